// A window that a model can write into: handlers run on the thread of the user interface, and one of them opens a
// dialog, whose own event loop runs other calls meanwhile.
//
//     qt [PORT]
//
// Serves over HTTP; works with Qt 5 and 6. Ends when the window is closed, or by SIGINT or SIGTERM.

#include <QtWidgets>

#include <mcpline.hpp>

#include <iostream>

namespace {

using mcpline::array;
using mcpline::Json;
using mcpline::object;

const Json text_schema = object({{"type", "object"},
                                 {"properties", object({{"text", object({{"type", "string"}})}})},
                                 {"required", array({"text"})}});

/// Asks the user, by a dialog with an event loop of its own. It is closed when the model does not wait any more.
std::string ask(mcpline::Call &call, QLabel &label, const QString &question) {
  label.setText(question);
  QMessageBox box(QMessageBox::Question, "mcpline", question, QMessageBox::Yes | QMessageBox::No, &label);
  call.on_cancel([&box] { box.reject(); });
  return box.exec() == QMessageBox::Yes ? "yes" : "no";
}

} // namespace

int main(int argc, char **argv) {
  QApplication application(argc, argv);
  const quint16 port = application.arguments().value(1, "0").toUShort();

  QLabel label("Nothing was said yet.");
  label.resize(400, 100);
  label.show();

  try {
    mcpline::Loop loop;
    mcpline::Server server("window", "1.0.0");
    server.use_loop(loop);
    server.add_tool("say", "Shows a text in the window; returns the text before", text_schema,
                    [&](const Json &arguments) {
                      const std::string before = label.text().toStdString();
                      label.setText(QString::fromStdString(arguments.string("/text")));
                      return before;
                    });
    server.add_tool("ask", "Asks the user a question with yes or no", text_schema,
                    [&](mcpline::Call &call, const Json &arguments) {
                      return ask(call, label, QString::fromStdString(arguments.string("/text")));
                    });
    server.on_end([](const std::optional<mcpline::Error> &error) {
      if (error) {
        std::cerr << "qt: " << error->what() << '\n';
      }
      QCoreApplication::quit();
    });

    // The library's descriptor is readable: callbacks are queued.
    QSocketNotifier queued(loop.fd(), QSocketNotifier::Read);
    QObject::connect(&queued, &QSocketNotifier::activated, [&loop] { loop.dispatch(); });

    server.stop_on_signals();
    std::cout << "listening on http://127.0.0.1:" << server.start_http("127.0.0.1", port) << "/mcp" << std::endl;
    return QApplication::exec();
  } catch (const mcpline::Error &error) {
    std::cerr << "qt: " << error.what() << '\n';
    return EXIT_FAILURE;
  }
}
