//! The core's schema validation, for arguments that a decoder rejected: it provides the error message.

use bytes::Bytes;
use mcpline::protocol::schema::CompiledSchema;
use mcpline::protocol::wire::Raw;
use pyo3::prelude::*;

use crate::errors;

/// A compiled JSON Schema.
#[pyclass(frozen, module = "mcpline._native")]
pub(crate) struct Schema {
    compiled: CompiledSchema,
}

#[pymethods]
impl Schema {
    #[new]
    fn new(py: Python<'_>, schema: &[u8]) -> PyResult<Self> {
        let schema = serde_json::from_slice(schema)
            .map_err(|error| errors::usage_error(py, format!("the schema is not JSON: {error}")))?;
        let compiled = CompiledSchema::compile(&schema)
            .map_err(|error| errors::usage_error(py, error.to_string()))?;
        Ok(Self { compiled })
    }

    /// Describes the violation of a value; `None` if the value is valid.
    fn violation(&self, py: Python<'_>, value: &[u8]) -> PyResult<Option<String>> {
        let value = Raw::parse(Bytes::copy_from_slice(value))
            .map_err(|error| errors::usage_error(py, error.to_string()))?;
        Ok(self
            .compiled
            .validate(&value)
            .err()
            .map(|violation| violation.to_string()))
    }
}
