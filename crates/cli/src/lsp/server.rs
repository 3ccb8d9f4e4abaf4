//! The state of a connection. The server handles messages in order.
//!
//! The server publishes the diagnostics of a text only when no message waits. So the server analyses only the newest
//! version of the text. If a waiting message changes the text of a request, the server answers the request with the
//! error ContentModified. If a waiting message cancels the request, the answer is the error RequestCancelled.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};

use lsp_server::{ErrorCode, Notification, Request, RequestId, Response};
use lsp_types::notification::{
    Cancel, DidChangeConfiguration, DidChangeTextDocument, DidChangeWatchedFiles, DidCloseTextDocument,
    DidOpenTextDocument, DidSaveTextDocument, Exit, Initialized, LogMessage, Notification as _,
    PublishDiagnostics, ShowMessage,
};
use lsp_types::request::{Initialize, Request as _, Shutdown};
use lsp_types::{
    DidChangeConfigurationParams, DidChangeTextDocumentParams, DidChangeWatchedFilesParams,
    DidCloseTextDocumentParams, DidOpenTextDocumentParams, DidSaveTextDocumentParams, InitializeParams,
    InitializeResult, LogMessageParams, MarkupKind, MessageType, NumberOrString, PublishDiagnosticsParams,
    ServerInfo, ShowMessageParams,
};
use reconverge_isa::program::{UnknownIsa, UnknownStage};
use reconverge_language::{HintSort, TargetHint};
use serde::Deserialize;
use serde_json::{Value, json};

use super::documents::OpenTexts;
use super::refusal::{Refusal, read_params};
use super::{answers, convert};
use crate::framed::Incoming;

/// State of a connection, according to the messages of the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// The client has not sent `initialize`.
    New,
    /// The server answers requests.
    Ready,
    /// The client has sent `shutdown`.
    Down,
    /// The client has sent `exit`.
    Over,
}

/// A connection.
pub(super) struct Server {
    phase: Phase,
    /// Whether the client sent `shutdown` before `exit`.
    ended_well: bool,
    /// Target that the command line states.
    given: TargetHint,
    texts: OpenTexts,
}

/// The settings of a client. The settings are inside an object `reconverge` or at the top level of the message.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct ClientSettings {
    machine: Option<String>,
    chip: Option<String>,
    stage: Option<String>,
    defines: Vec<String>,
    hints: Option<Vec<String>>,
}

impl Server {
    pub(super) fn new(given: TargetHint) -> Server {
        let hints = SHOWN.to_vec();
        let mut texts = OpenTexts::default();
        (texts.fallback, texts.hints) = (given.clone(), hints);
        Server { phase: Phase::New, ended_well: false, given, texts }
    }

    /// Whether the client has ended the connection.
    pub(super) fn is_over(&self) -> bool {
        self.phase == Phase::Over
    }

    /// Whether the connection ended after `shutdown`.
    pub(super) fn ended_well(&self) -> bool {
        self.ended_well
    }

    /// Returns whether the server has work that does not need a further message.
    pub(super) fn is_busy(&self) -> bool {
        self.phase == Phase::Ready && self.texts.next_dirty().is_some()
    }

    /// Handles a message and returns the messages to send. `waiting` contains the messages that arrived after this
    /// message.
    pub(super) fn take(&mut self, message: Incoming, waiting: &VecDeque<Incoming>) -> Vec<Value> {
        let message = match message {
            Incoming::Message(message) => message,
            Incoming::Malformed(why) => return vec![refused(&Value::Null, ErrorCode::ParseError, &why)],
        };
        let is_call = message["method"].is_string();
        let id = message.get("id").cloned();
        match id {
            // The message is a response. The server ignores responses, because the server does not send requests.
            _ if !is_call && (message.get("result").is_some() || message.get("error").is_some()) => {
                Vec::new()
            }
            Some(id) if is_call => match serde_json::from_value::<Request>(message) {
                Ok(request) => vec![self.request(request, waiting)],
                Err(error) => vec![refused(&id, ErrorCode::InvalidRequest, &error.to_string())],
            },
            None if is_call => match serde_json::from_value::<Notification>(message) {
                Ok(notification) => self.notification(notification),
                Err(error) => vec![logged(error.to_string())],
            },
            id => {
                let why = "missing `method` in a message";
                vec![refused(&id.unwrap_or_default(), ErrorCode::InvalidRequest, why)]
            }
        }
    }

    fn request(&mut self, request: Request, waiting: &VecDeque<Incoming>) -> Value {
        let Request { id, method, params } = request;
        let answer = match (self.phase, method.as_str()) {
            (Phase::New, Initialize::METHOD) => self.initialize(params),
            (Phase::New, _) => {
                Err(Refusal::new(ErrorCode::ServerNotInitialized, format!("`{method}` before `initialize`")))
            }
            (Phase::Ready, Shutdown::METHOD) => {
                self.phase = Phase::Down;
                Ok(Value::Null)
            }
            (Phase::Ready, Initialize::METHOD) => {
                Err(Refusal::new(ErrorCode::InvalidRequest, "expected `initialize` only once"))
            }
            (Phase::Down | Phase::Over, _) => {
                Err(Refusal::new(ErrorCode::InvalidRequest, format!("`{method}` after `shutdown`")))
            }
            (Phase::Ready, _) => match superseded(&id, &params, waiting) {
                Some(refusal) => Err(refusal),
                None => self.answer(&method, params),
            },
        };
        let response = match answer {
            Ok(result) => Response::new_ok(id, result),
            Err(Refusal { code, message }) => Response::new_err(id, code as i32, message),
        };
        outgoing(&response)
    }

    /// Answers a request. A panic is a defect of this program and ends only this request.
    fn answer(&mut self, method: &str, params: Value) -> Result<Value, Refusal> {
        let answered = catch_unwind(AssertUnwindSafe(|| answers::answer(&mut self.texts, method, params)));
        answered.unwrap_or_else(|_| {
            Err(Refusal::new(
                ErrorCode::InternalError,
                format!("`{method}` failed; see the messages of the server"),
            ))
        })
    }

    fn initialize(&mut self, params: Value) -> Result<Value, Refusal> {
        let params: InitializeParams = read_params(params)?;
        let general = params.capabilities.general.unwrap_or_default();
        self.texts.unit = convert::unit_of(general.position_encodings.as_deref());
        self.phase = Phase::Ready;
        let client = params.capabilities.text_document.unwrap_or_default();
        let is_plain = |formats: Option<Vec<MarkupKind>>| {
            formats.is_some_and(|all| !all.is_empty() && !all.contains(&MarkupKind::Markdown))
        };
        self.texts.plain_hover = is_plain(client.hover.and_then(|hover| hover.content_format));
        let item = client.completion.and_then(|completion| completion.completion_item);
        self.texts.plain_help = is_plain(item.and_then(|item| item.documentation_format));
        if let Some(options) = params.initialization_options {
            // Errors in the options are ignored. The server would have to report such an error before the answer to
            // `initialize`, but the protocol forbids messages before this answer.
            let _ = self.settings(options);
        }
        let version = Some(env!("CARGO_PKG_VERSION").to_owned());
        let result = InitializeResult {
            capabilities: answers::capabilities(self.texts.unit),
            server_info: Some(ServerInfo { name: "reconverge".to_owned(), version }),
        };
        Ok(json!(result))
    }

    fn notification(&mut self, notification: Notification) -> Vec<Value> {
        let Notification { method, params } = notification;
        let done = match (self.phase, method.as_str()) {
            (phase, Exit::METHOD) => {
                self.ended_well = phase == Phase::Down;
                self.phase = Phase::Over;
                Ok(Vec::new())
            }
            (Phase::Ready, _) => self.noted(&method, params),
            // Before `initialize` and after `shutdown`, notifications have no effect.
            (Phase::New | Phase::Down | Phase::Over, _) => Ok(Vec::new()),
        };
        // A notification has no answer, so an error in a notification is logged.
        done.unwrap_or_else(|refusal| vec![logged(format!("{method}: {}", refusal.message))])
    }

    fn noted(&mut self, method: &str, params: Value) -> Result<Vec<Value>, Refusal> {
        match method {
            DidOpenTextDocument::METHOD => {
                let opened = read_params::<DidOpenTextDocumentParams>(params)?.text_document;
                self.texts.open(opened.uri.as_str(), &opened.language_id, opened.version, opened.text);
            }
            DidChangeTextDocument::METHOD => {
                let DidChangeTextDocumentParams { text_document, content_changes } = read_params(params)?;
                let uri = text_document.uri.as_str();
                if !self.texts.change(uri, text_document.version, content_changes) {
                    return Err(Refusal::new(ErrorCode::InvalidParams, format!("{uri} is not open")));
                }
            }
            DidCloseTextDocument::METHOD => {
                let uri = read_params::<DidCloseTextDocumentParams>(params)?.text_document.uri;
                if self.texts.close(uri.as_str()) {
                    let empty = PublishDiagnosticsParams { uri, diagnostics: Vec::new(), version: None };
                    return Ok(vec![notice(PublishDiagnostics::METHOD, json!(empty))]);
                }
            }
            DidSaveTextDocument::METHOD => {
                let uri = read_params::<DidSaveTextDocumentParams>(params)?.text_document.uri;
                convert::path_of(uri.as_str()).into_iter().for_each(|path| self.texts.changed_file(&path));
            }
            DidChangeWatchedFiles::METHOD => {
                for change in read_params::<DidChangeWatchedFilesParams>(params)?.changes {
                    convert::path_of(change.uri.as_str())
                        .into_iter()
                        .for_each(|path| self.texts.changed_file(&path));
                }
            }
            DidChangeConfiguration::METHOD => {
                let settings = read_params::<DidChangeConfigurationParams>(params)?.settings;
                if let Err(why) = self.settings(settings) {
                    return Ok(vec![warning(why)]);
                }
            }
            // A cancellation needs no action here. If the cancelled request still waits, the server finds the
            // cancellation when the server handles the request. Otherwise, the server has already answered the request.
            Cancel::METHOD | Initialized::METHOD => {}
            _ => {}
        }
        Ok(Vec::new())
    }

    /// Applies the client's settings. The settings are inside an object `reconverge` or at the top level of the
    /// message.
    fn settings(&mut self, settings: Value) -> Result<(), String> {
        let own = settings.get("reconverge").cloned().unwrap_or(settings);
        if own.is_null() {
            return Ok(());
        }
        let own: ClientSettings =
            serde_json::from_value(own).map_err(|error| format!("settings: {error}"))?;
        let filled = |text: Option<String>| text.filter(|text| !text.is_empty() && text != "auto");
        let isa = filled(own.machine).map(|name| name.parse()).transpose();
        let stage = filled(own.stage).map(|name| name.parse()).transpose();
        let isa = isa.map_err(|error: UnknownIsa| format!("setting `machine`: {error}"))?;
        let stage = stage.map_err(|error: UnknownStage| format!("setting `stage`: {error}"))?;
        let given = self.given.clone();
        self.texts.fallback = TargetHint {
            isa: isa.or(given.isa),
            chip: filled(own.chip).or(given.chip),
            stage: stage.or(given.stage),
        };
        self.texts.defines = own.defines;
        let shown =
            own.hints.map(|names| names.iter().map(|name| hint_named(name)).collect::<Result<Vec<_>, _>>());
        self.texts.hints = shown.transpose()?.unwrap_or_else(|| SHOWN.to_vec());
        self.texts.forget_all();
        Ok(())
    }

    /// Publishes the diagnostics of one changed text.
    pub(super) fn publish_one(&mut self) -> Vec<Value> {
        let Some(uri) = self.texts.next_dirty() else { return Vec::new() };
        self.texts.published(&uri);
        let published = catch_unwind(AssertUnwindSafe(|| answers::diagnostics(&mut self.texts, &uri)));
        match published.ok().flatten() {
            Some(params) => vec![notice(PublishDiagnostics::METHOD, json!(params))],
            None => Vec::new(),
        }
    }
}

/// The kinds of hints that are shown if the settings do not select any kinds.
const SHOWN: [HintSort; 2] = [HintSort::Address, HintSort::Value];

/// The kinds of hints, and the name of each kind in the settings.
const HINTS: [(&str, HintSort); 3] =
    [("addresses", HintSort::Address), ("words", HintSort::Words), ("values", HintSort::Value)];

fn hint_named(name: &str) -> Result<HintSort, String> {
    let found = HINTS.iter().find(|(known, _)| *known == name).map(|(_, sort)| *sort);
    let suggested = || reconverge_isa::source::suggest(name, HINTS.map(|(known, _)| known));
    found.ok_or_else(|| format!("setting `hints`: unknown hint `{name}`: {}", suggested()))
}

/// Returns an error if a waiting message cancels a request or changes the text of the request.
fn superseded(id: &RequestId, params: &Value, waiting: &VecDeque<Incoming>) -> Option<Refusal> {
    let waiting = || {
        waiting.iter().filter_map(|message| match message {
            Incoming::Message(message) => Some(message),
            Incoming::Malformed(_) => None,
        })
    };
    let cancels = |message: &&Value| {
        let cancelled: Option<NumberOrString> = serde_json::from_value(message["params"]["id"].clone()).ok();
        let cancelled = cancelled.map(|cancelled| match cancelled {
            NumberOrString::Number(number) => RequestId::from(number),
            NumberOrString::String(text) => RequestId::from(text),
        });
        message["method"] == Cancel::METHOD && cancelled.as_ref() == Some(id)
    };
    if waiting().any(|message| cancels(&message)) {
        return Some(Refusal::new(ErrorCode::RequestCanceled, "cancelled"));
    }
    let uri = params["textDocument"]["uri"].as_str()?;
    let changes = |message: &Value| {
        message["method"] == DidChangeTextDocument::METHOD && message["params"]["textDocument"]["uri"] == uri
    };
    waiting()
        .any(changes)
        .then(|| Refusal::new(ErrorCode::ContentModified, "the text has changed since the request"))
}

fn outgoing(response: &Response) -> Value {
    let mut message = json!(response);
    message["jsonrpc"] = json!("2.0");
    message
}

fn refused(id: &Value, code: ErrorCode, why: &str) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "error": { "code": code as i32, "message": why } })
}

fn notice(method: &str, params: Value) -> Value {
    json!({ "jsonrpc": "2.0", "method": method, "params": params })
}

fn logged(message: String) -> Value {
    notice(LogMessage::METHOD, json!(LogMessageParams { typ: MessageType::ERROR, message }))
}

fn warning(message: String) -> Value {
    notice(ShowMessage::METHOD, json!(ShowMessageParams { typ: MessageType::WARNING, message }))
}
