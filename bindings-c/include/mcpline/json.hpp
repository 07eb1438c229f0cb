/// \file
/// JSON for programs without a JSON library: reading by JSON pointers, and writing; with nlohmann::json if the program
/// asks for it.

#ifndef MCPLINE_JSON_HPP
#define MCPLINE_JSON_HPP

#include <initializer_list>
#include <iterator>
#include <limits>
#include <optional>
#include <ostream>
#include <vector>

#include "error.hpp"

/// Whether nlohmann::json is supported. Default: no. Define it as 1 for all files of a program, or for none: the types
/// of this header differ.
#ifndef MCPLINE_NLOHMANN_JSON
#define MCPLINE_NLOHMANN_JSON 0
#endif

#if MCPLINE_NLOHMANN_JSON
#include <nlohmann/json.hpp>
#endif

MCPLINE_BEGIN_NAMESPACE

/// A JSON value. Cheap to copy.
///
/// A Json made from a std::string owns its text, and so do the values found in it. A Json made by `view`, like those
/// that handlers receive, borrows its text; `owned` makes a copy. Values are found by JSON pointers (RFC 6901): "" is
/// the whole value, "/cities/0/name" a part. If there is no value, functions fail with `MCPL_NOT_FOUND`; if it has
/// another type, with `MCPL_USAGE_ERROR`.
class Json {
public:
  /// null.
  Json() : text_("null") {}

  /// Owns `text`, which must be JSON; it is validated when it is read.
  explicit Json(std::string text) : owner_(std::make_shared<const std::string>(std::move(text))), text_(*owner_) {}

  /// Borrows `text`, which must outlive this object.
  static Json view(std::string_view text) { return Json(nullptr, text); }

  /// Returns a Json that owns its text.
  Json owned() const { return owner_ ? *this : Json(std::string(text_)); }

  /// The JSON text.
  std::string_view text() const noexcept { return text_; }

  /// The JSON text.
  operator std::string_view() const noexcept { return text_; }

  /// A copy of the JSON text.
  operator std::string() const { return std::string(text_); }

  /// Returns the type of the value.
  Fallible<mcpl_json_kind> kind() const {
    mcpl_json_kind kind = MCPL_JSON_NULL;
    MCPLINE_CHECK(mcpl_json_kind_of(text_.data(), text_.size(), &kind));
    return kind;
  }

  /// Returns whether there is a value at `pointer`.
  bool has(std::string_view pointer) const {
#if MCPLINE_EXCEPTIONS
    return find(pointer).has_value();
#else
    const Expected<std::optional<Json>> found = find(pointer);
    return found && found->has_value();
#endif
  }

  /// Returns the value at `pointer`, if there is one.
  Fallible<std::optional<Json>> find(std::string_view pointer) const {
    const char *value = nullptr;
    std::size_t length = 0;
    const mcpl_status status =
        mcpl_json_find(text_.data(), text_.size(), detail::CString(pointer).get(), &value, &length);
    if (status == MCPL_NOT_FOUND) {
      return std::optional<Json>();
    }
    MCPLINE_CHECK(status);
    return std::optional<Json>(Json(owner_, std::string_view(value, length)));
  }

  /// Returns the value at `pointer`.
  Fallible<Json> at(std::string_view pointer) const {
    const char *value = nullptr;
    std::size_t length = 0;
    MCPLINE_CHECK(mcpl_json_find(text_.data(), text_.size(), detail::CString(pointer).get(), &value, &length));
    return Json(owner_, std::string_view(value, length));
  }

  /// Returns the string at `pointer`, with its escapes decoded.
  Fallible<std::string> string(std::string_view pointer = "") const {
    char *value = nullptr;
    std::size_t length = 0;
    MCPLINE_CHECK(mcpl_json_string(text_.data(), text_.size(), detail::CString(pointer).get(), &value, &length));
    return detail::taken(value, length);
  }

  /// Returns the integer at `pointer`.
  Fallible<std::int64_t> int64(std::string_view pointer = "") const {
    std::int64_t value = 0;
    MCPLINE_CHECK(mcpl_json_int64(text_.data(), text_.size(), detail::CString(pointer).get(), &value));
    return value;
  }

  /// Returns the number at `pointer`.
  Fallible<double> number(std::string_view pointer = "") const {
    double value = 0;
    MCPLINE_CHECK(mcpl_json_double(text_.data(), text_.size(), detail::CString(pointer).get(), &value));
    return value;
  }

  /// Returns the boolean at `pointer`.
  Fallible<bool> boolean(std::string_view pointer = "") const {
    bool value = false;
    MCPLINE_CHECK(mcpl_json_bool(text_.data(), text_.size(), detail::CString(pointer).get(), &value));
    return value;
  }

  /// Returns the string at `pointer`, or `otherwise` if there is no value.
  Fallible<std::string> string_or(std::string_view pointer, std::string_view otherwise) const {
    return has(pointer) ? string(pointer) : Fallible<std::string>(std::string(otherwise));
  }

  /// Returns the integer at `pointer`, or `otherwise` if there is no value.
  Fallible<std::int64_t> int64_or(std::string_view pointer, std::int64_t otherwise) const {
    return has(pointer) ? int64(pointer) : Fallible<std::int64_t>(otherwise);
  }

  /// Returns the number at `pointer`, or `otherwise` if there is no value.
  Fallible<double> number_or(std::string_view pointer, double otherwise) const {
    return has(pointer) ? number(pointer) : Fallible<double>(otherwise);
  }

  /// Returns the boolean at `pointer`, or `otherwise` if there is no value.
  Fallible<bool> boolean_or(std::string_view pointer, bool otherwise) const {
    return has(pointer) ? boolean(pointer) : Fallible<bool>(otherwise);
  }

  /// Returns the number of members or elements of the value at `pointer`.
  Fallible<std::size_t> count(std::string_view pointer = "") const {
    std::size_t count = 0;
    MCPLINE_CHECK(mcpl_json_count(text_.data(), text_.size(), detail::CString(pointer).get(), &count));
    return count;
  }

  /// Returns the members of the object at `pointer`, in the order of the text.
  Fallible<std::vector<std::pair<std::string, Json>>> members(std::string_view pointer = "") const {
    MCPLINE_TAKE(whole, at(pointer));
    MCPLINE_TAKE(count, whole.count());
    std::vector<std::pair<std::string, Json>> found;
    found.reserve(count);
    for (std::size_t index = 0; index < count; ++index) {
      char *name = nullptr;
      MCPLINE_TAKE(value, whole.item(index, &name));
      found.emplace_back(detail::taken(name), std::move(value));
    }
    return found;
  }

  /// Returns the elements of the array at `pointer`.
  Fallible<std::vector<Json>> elements(std::string_view pointer = "") const {
    MCPLINE_TAKE(whole, at(pointer));
    MCPLINE_TAKE(count, whole.count());
    std::vector<Json> found;
    found.reserve(count);
    for (std::size_t index = 0; index < count; ++index) {
      char *name = nullptr;
      MCPLINE_TAKE(value, whole.item(index, &name));
      detail::taken(name);
      found.push_back(std::move(value));
    }
    return found;
  }

#if MCPLINE_NLOHMANN_JSON
  /// Returns the value as a nlohmann::json.
  nlohmann::json parsed() const { return nlohmann::json::parse(text_); }

  /// Returns the value as a type that nlohmann::json can convert to.
  template <class T> T as() const { return parsed().template get<T>(); }
#endif

private:
  Json(std::shared_ptr<const std::string> owner, std::string_view text) : owner_(std::move(owner)), text_(text) {}

  Fallible<Json> item(std::size_t index, char **name) const {
    const char *value = nullptr;
    std::size_t length = 0;
    MCPLINE_CHECK(mcpl_json_item(text_.data(), text_.size(), index, name, &value, &length));
    return Json(owner_, std::string_view(value, length));
  }

  std::shared_ptr<const std::string> owner_;
  std::string_view text_;
};

/// Writes the JSON text.
inline std::ostream &operator<<(std::ostream &out, const Json &json) { return out << json.text(); }

#if MCPLINE_NLOHMANN_JSON
/// Converts a Json to nlohmann::json, also for handlers.
inline void to_json(nlohmann::json &to, const Json &from) { to = from.parsed(); }
#endif

/// Writes JSON. One thread at a time. `text` fails with the first error.
class Writer {
public:
  /// Creates an empty writer.
  Writer() : json_(mcpl_json_new(), &mcpl_json_free) {
#if MCPLINE_EXCEPTIONS
    MCPLINE_CHECK_HANDLE(json_);
#endif
  }

  /// Begins an object.
  Writer &begin_object() { return mcpl_json_begin_object(json_.get()), *this; }
  /// Ends the innermost object.
  Writer &end_object() { return mcpl_json_end_object(json_.get()), *this; }
  /// Begins an array.
  Writer &begin_array() { return mcpl_json_begin_array(json_.get()), *this; }
  /// Ends the innermost array.
  Writer &end_array() { return mcpl_json_end_array(json_.get()), *this; }
  /// Writes the name of the next member.
  Writer &name(std::string_view name) { return mcpl_json_name(json_.get(), detail::CString(name).get()), *this; }
  /// Writes a string.
  Writer &put(std::string_view text) { return mcpl_json_put_string(json_.get(), text.data(), text.size()), *this; }
  /// Writes a string.
  Writer &put(const std::string &text) { return put(std::string_view(text)); }
  /// Writes a string.
  Writer &put(const char *text) { return put(std::string_view(text)); }
  /// Writes a number.
  Writer &put(double number) { return mcpl_json_put_double(json_.get(), number), *this; }
  /// null.
  Writer &put(std::nullptr_t) { return mcpl_json_put_null(json_.get()), *this; }
  /// Writes a JSON value.
  Writer &put(const Json &json) { return put_json(json.text()); }
  /// Writes a boolean or an integer.
  template <class Integer, std::enable_if_t<std::is_integral_v<Integer>, int> = 0> Writer &put(Integer value) {
    if constexpr (std::is_same_v<Integer, bool>) {
      mcpl_json_put_bool(json_.get(), value);
    } else {
      if constexpr (std::is_unsigned_v<Integer> && sizeof(Integer) >= sizeof(std::int64_t)) {
        if (value > static_cast<Integer>((std::numeric_limits<std::int64_t>::max)())) {
          const std::string digits = std::to_string(value);
          return put_json(digits);
        }
      }
      mcpl_json_put_int64(json_.get(), static_cast<std::int64_t>(value));
    }
    return *this;
  }
  /// Writes a value that is already JSON text.
  Writer &put_json(std::string_view text) { return mcpl_json_put_json(json_.get(), text.data(), text.size()), *this; }
  /// Writes binary data as a base64 string.
  Writer &put_base64(const void *bytes, std::size_t length) {
    return mcpl_json_put_base64(json_.get(), bytes, length), *this;
  }
  /// Returns the JSON that was written; fails if it is not one complete value.
  Fallible<Json> json() const {
    MCPLINE_TAKE(written, text());
    return Json(std::move(written));
  }
  /// Returns the JSON that was written; fails if it is not one complete value.
  Fallible<std::string> text() const {
    const char *text = nullptr;
    std::size_t length = 0;
    MCPLINE_CHECK(mcpl_json_text(json_.get(), &text, &length));
    return std::string(text, length);
  }
  /// Resets the writer to its initial state, including its error.
  void clear() { mcpl_json_clear(json_.get()); }

private:
  std::unique_ptr<mcpl_json, decltype(&mcpl_json_free)> json_;
};

namespace detail {

/// Returns text that was written; without exceptions, no text after an error: it is not valid JSON.
inline std::string text_or_nothing(Fallible<std::string> text) {
#if MCPLINE_EXCEPTIONS
  return text;
#else
  return text.value_or("");
#endif
}

} // namespace detail

/// A value in `object` and `array`: string, number, boolean, nullptr, Json or nlohmann::json.
class Value {
public:
  /// Converts any value that Writer::put accepts.
  template <class T, std::enable_if_t<!std::is_same_v<std::decay_t<T>, Value>, int> = 0> Value(const T &value) {
#if MCPLINE_NLOHMANN_JSON
    if constexpr (std::is_same_v<T, nlohmann::json> || std::is_same_v<T, nlohmann::ordered_json>) {
      text_ = value.dump();
      return;
    } else
#endif
      text_ = detail::text_or_nothing(Writer().put(value).text());
  }

  /// The value as JSON text.
  const std::string &text() const noexcept { return text_; }

private:
  std::string text_;
};

/// Returns a JSON object: `object({{"city", "Bergen"}, {"days", 3}})`. Text that is not UTF-8 throws; without
/// exceptions, the result is not valid JSON, and functions that get it fail.
inline Json object(std::initializer_list<std::pair<std::string_view, Value>> members) {
  Writer writer;
  writer.begin_object();
  for (const auto &[name, value] : members) {
    writer.name(name).put_json(value.text());
  }
  return Json(detail::text_or_nothing(writer.end_object().text()));
}

/// Returns a JSON array: `array({"Bergen", 3, nullptr})`. Fails as `object` does.
inline Json array(std::initializer_list<Value> elements) {
  Writer writer;
  writer.begin_array();
  for (const auto &value : elements) {
    writer.put_json(value.text());
  }
  return Json(detail::text_or_nothing(writer.end_array().text()));
}

/// A parameter that is JSON: text, Json, nlohmann::json, or nullptr for none. It may borrow its text; do not store it.
class JsonText {
public:
  /// No value.
  JsonText(std::nullptr_t = nullptr) {}

  /// JSON text, or a Json.
  template <class T, std::enable_if_t<std::is_convertible_v<const T &, std::string_view>, int> = 0>
  JsonText(const T &text) : text_(std::string_view(text)), given_(true) {}

#if MCPLINE_NLOHMANN_JSON
  /// Serializes a nlohmann::json.
  JsonText(const nlohmann::json &json) : owned_(json.dump()), text_(owned_), given_(true) {}
  /// Serializes a nlohmann::json.
  JsonText(const nlohmann::ordered_json &json) : owned_(json.dump()), text_(owned_), given_(true) {}
#endif

  JsonText(const JsonText &) = delete;
  JsonText &operator=(const JsonText &) = delete;

  /// The text, or NULL for none.
  const char *data() const noexcept { return given_ ? (text_.data() ? text_.data() : "") : nullptr; }

  /// Length of the text in bytes.
  std::size_t size() const noexcept { return text_.size(); }

  /// A copy that ends with a zero byte, for C functions.
  std::string text() const { return std::string(text_); }

private:
  std::string owned_;
  std::string_view text_;
  bool given_ = false;
};

MCPLINE_END_NAMESPACE

#endif
