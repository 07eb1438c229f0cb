//! All arguments of a call in one type, for methods with `#[tool]`.

use serde::de::{Deserialize, Deserializer};

/// All arguments of a call, decoded into one type. For methods with [`#[mcpline::tools]`](macro@crate::tools), where a
/// parameter of another type is one argument.
///
/// ```
/// use mcpline::server::Args;
///
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct Sum {
///     a: i64,
///     b: i64,
/// }
///
/// # struct App;
/// #[mcpline::tools]
/// impl App {
///     /// Adds two numbers.
///     #[tool(read_only)]
///     async fn add(&self, Args(sum): Args<Sum>) -> i64 {
///         sum.a + sum.b
///     }
/// }
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Args<T>(pub T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Args<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        T::deserialize(deserializer).map(Self)
    }
}

impl<T: schemars::JsonSchema> schemars::JsonSchema for Args<T> {
    fn inline_schema() -> bool {
        T::inline_schema()
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        T::schema_name()
    }

    fn schema_id() -> std::borrow::Cow<'static, str> {
        T::schema_id()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        T::json_schema(generator)
    }
}
