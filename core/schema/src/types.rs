//! The types of JSON as in `type`.

use serde_json::Value;

use crate::dialect::Dialect;
use crate::number;

/// A set of types.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) struct Types(u8);

/// In the order of their listing in messages.
const NAMES: [&str; 7] = [
    "array", "boolean", "integer", "null", "number", "object", "string",
];

const INTEGER: u8 = 1 << 2;
const NUMBER: u8 = 1 << 4;

impl Types {
    /// Parses the value of `type`: a type, or a list of unique ones.
    pub(crate) fn of(value: &Value) -> Option<Self> {
        let one = |value: &Value| {
            let name = value.as_str()?;
            let index = NAMES.iter().position(|known| *known == name)?;
            Some(1u8 << index)
        };
        let Value::Array(names) = value else {
            return one(value).map(Self);
        };
        let mut types = 0;
        for name in names {
            let this = one(name)?;
            if types & this != 0 {
                return None;
            }
            types |= this;
        }
        (types != 0).then_some(Self(types))
    }

    /// Whether a value has one of the types. In draft 4, integers are written without a fraction.
    pub(crate) fn matches(self, value: &Value, dialect: Dialect) -> bool {
        let bits = match value {
            Value::Array(_) => 1,
            Value::Bool(_) => 1 << 1,
            Value::Null => 1 << 3,
            Value::Object(_) => 1 << 5,
            Value::String(_) => 1 << 6,
            Value::Number(number) => {
                let whole = if dialect == Dialect::Draft4 {
                    number::is_integer_literal(number)
                } else {
                    number::is_integer(number)
                };
                if whole { NUMBER | INTEGER } else { NUMBER }
            }
        };
        self.0 & bits != 0
    }

    /// Returns their names.
    pub(crate) fn names(self) -> impl Iterator<Item = &'static str> {
        NAMES
            .into_iter()
            .enumerate()
            .filter(move |(index, _)| self.0 & (1 << index) != 0)
            .map(|(_, name)| name)
    }
}
