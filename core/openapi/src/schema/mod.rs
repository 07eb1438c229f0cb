//! Schemas of OpenAPI as JSON Schema 2020-12.

mod convert;
mod set;

pub(crate) use convert::{Direction, Position, nullable};
pub(crate) use set::{BuiltSchema, SchemaSet, Stop, build, size_within};
