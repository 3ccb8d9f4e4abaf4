//! Errors of requests.

use lsp_server::ErrorCode;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// The reason why a request is answered with an error.
#[derive(Debug)]
pub(super) struct Refusal {
    pub(super) code: ErrorCode,
    pub(super) message: String,
}

impl Refusal {
    pub(super) fn new(code: ErrorCode, message: impl Into<String>) -> Refusal {
        Refusal { code, message: message.into() }
    }
}

/// Parses the parameters of a message.
pub(super) fn read_params<T: DeserializeOwned>(params: Value) -> Result<T, Refusal> {
    serde_json::from_value(params).map_err(|error| Refusal::new(ErrorCode::InvalidParams, error.to_string()))
}
