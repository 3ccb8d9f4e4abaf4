//! Answers to requests about a text, and the diagnostics of the text.

use std::collections::HashMap;
use std::rc::Rc;
use std::str::FromStr;

use lsp_server::ErrorCode;
use lsp_types::request::{
    CodeActionRequest, Completion, DocumentHighlightRequest, DocumentSymbolRequest, FoldingRangeRequest,
    Formatting, GotoDefinition, HoverRequest, InlayHintRequest, PrepareRenameRequest, RangeFormatting,
    References, Rename, Request, ResolveCompletionItem, SemanticTokensFullRequest,
    SemanticTokensRangeRequest,
};
use lsp_types::{
    CodeAction, CodeActionKind, CodeActionOptions, CodeActionOrCommand, CompletionItem, CompletionOptions,
    CompletionTextEdit, Diagnostic, DiagnosticRelatedInformation, DocumentHighlight, DocumentHighlightKind,
    DocumentSymbol, Documentation, FoldingRange, FoldingRangeKind, FoldingRangeProviderCapability, Hover,
    HoverContents, HoverProviderCapability, InlayHint, InlayHintLabel, Location, MarkupContent, MarkupKind,
    NumberOrString, OneOf, Position, PrepareRenameResponse, PublishDiagnosticsParams, Range, RenameOptions,
    SaveOptions, SemanticToken, SemanticTokens, SemanticTokensFullOptions, SemanticTokensLegend,
    SemanticTokensOptions, ServerCapabilities, TextDocumentSyncCapability, TextDocumentSyncKind,
    TextDocumentSyncOptions, TextDocumentSyncSaveOptions, TextEdit, Uri, WorkspaceEdit,
};
use reconverge_isa::Isa;
use reconverge_isa::Span;
use reconverge_language::{
    Analysis, Colour, ColumnUnit, FilePlace, HintSort, LineStarts, Marker, OutlineEntry, Proposal,
    ProposalSort, Remedy, TextChange, mnemonic_help,
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::convert::{self, TextPlaces};
use super::documents::OpenTexts;
use super::refusal::{Refusal, read_params};

/// Data in a completion item. [`resolved`] uses this data to find the item's documentation.
#[derive(Debug, Deserialize, Serialize)]
struct ItemData {
    machine: String,
    mnemonic: String,
}

/// Returns the capabilities of the server.
pub(super) fn capabilities(unit: ColumnUnit) -> ServerCapabilities {
    let sync = TextDocumentSyncOptions {
        open_close: Some(true),
        change: Some(TextDocumentSyncKind::INCREMENTAL),
        save: Some(TextDocumentSyncSaveOptions::SaveOptions(SaveOptions { include_text: Some(false) })),
        ..TextDocumentSyncOptions::default()
    };
    let legend = SemanticTokensLegend {
        token_types: convert::token_types(),
        token_modifiers: convert::TOKEN_MODIFIERS.to_vec(),
    };
    ServerCapabilities {
        position_encoding: Some(convert::encoding(unit)),
        text_document_sync: Some(TextDocumentSyncCapability::Options(sync)),
        hover_provider: Some(HoverProviderCapability::Simple(true)),
        completion_provider: Some(CompletionOptions {
            resolve_provider: Some(true),
            trigger_characters: Some([".", "@", "\\", "$"].map(str::to_owned).to_vec()),
            ..CompletionOptions::default()
        }),
        definition_provider: Some(OneOf::Left(true)),
        references_provider: Some(OneOf::Left(true)),
        document_highlight_provider: Some(OneOf::Left(true)),
        document_symbol_provider: Some(OneOf::Left(true)),
        code_action_provider: Some(
            CodeActionOptions {
                code_action_kinds: Some(vec![CodeActionKind::QUICKFIX]),
                ..CodeActionOptions::default()
            }
            .into(),
        ),
        document_formatting_provider: Some(OneOf::Left(true)),
        document_range_formatting_provider: Some(OneOf::Left(true)),
        rename_provider: Some(OneOf::Right(RenameOptions {
            prepare_provider: Some(true),
            work_done_progress_options: Default::default(),
        })),
        folding_range_provider: Some(FoldingRangeProviderCapability::Simple(true)),
        inlay_hint_provider: Some(OneOf::Left(true)),
        semantic_tokens_provider: Some(
            SemanticTokensOptions {
                legend,
                range: Some(true),
                full: Some(SemanticTokensFullOptions::Bool(true)),
                ..SemanticTokensOptions::default()
            }
            .into(),
        ),
        ..ServerCapabilities::default()
    }
}

/// The source to which a request refers.
struct Asked {
    uri: Uri,
    analysis: Rc<Analysis>,
    unit: ColumnUnit,
}

impl Asked {
    fn placed(&self) -> TextPlaces<'_> {
        TextPlaces { text: self.analysis.text(), lines: self.analysis.lines(), unit: self.unit }
    }

    fn offset(&self, position: Position) -> usize {
        self.placed().offset(position)
    }

    fn whole(&self) -> Span {
        Span::new(0, self.analysis.text().len())
    }

    fn edits(&self, changes: &[TextChange]) -> Vec<TextEdit> {
        changes
            .iter()
            .map(|change| TextEdit::new(self.placed().range(change.span), change.text.clone()))
            .collect()
    }

    #[allow(
        clippy::mutable_key_type,
        reason = "the protocol's type has URIs as keys, which are never changed"
    )]
    fn workspace_edit(&self, edits: Vec<TextEdit>) -> WorkspaceEdit {
        WorkspaceEdit::new(HashMap::from([(self.uri.clone(), edits)]))
    }
}

/// Answers a request.
pub(super) fn answer(texts: &mut OpenTexts, method: &str, params: Value) -> Result<Value, Refusal> {
    match method {
        HoverRequest::METHOD => {
            let is_plain = texts.plain_hover;
            about(texts, params, |asked: &Asked, at: &lsp_types::HoverParams| {
                hover(asked, at.text_document_position_params.position, is_plain)
            })
        }
        Completion::METHOD => about(texts, params, |asked: &Asked, at: &lsp_types::CompletionParams| {
            completions(asked, at.text_document_position.position)
        }),
        ResolveCompletionItem::METHOD => resolved(read_params(params)?, texts.plain_help),
        GotoDefinition::METHOD => definition(texts, params),
        References::METHOD => references(texts, params),
        DocumentHighlightRequest::METHOD => {
            about(texts, params, |asked: &Asked, at: &lsp_types::DocumentHighlightParams| {
                highlights(asked, at.text_document_position_params.position)
            })
        }
        PrepareRenameRequest::METHOD => {
            try_about(texts, params, |asked: &Asked, at: &lsp_types::TextDocumentPositionParams| {
                renamable(asked, at.position)
            })
        }
        Rename::METHOD => try_about(texts, params, rename),
        DocumentSymbolRequest::METHOD => {
            about(texts, params, |asked: &Asked, _: &lsp_types::DocumentSymbolParams| {
                asked.analysis.outline().iter().map(|entry| symbol(asked, entry)).collect::<Vec<_>>()
            })
        }
        FoldingRangeRequest::METHOD => {
            about(texts, params, |asked: &Asked, _: &lsp_types::FoldingRangeParams| folds(asked))
        }
        InlayHintRequest::METHOD => {
            let shown = texts.hints.clone();
            about(texts, params, |asked: &Asked, of: &lsp_types::InlayHintParams| {
                hints(asked, of.range, &shown)
            })
        }
        SemanticTokensFullRequest::METHOD => {
            about(texts, params, |asked: &Asked, _: &lsp_types::SemanticTokensParams| {
                tokens(asked, asked.whole())
            })
        }
        SemanticTokensRangeRequest::METHOD => {
            about(texts, params, |asked: &Asked, of: &lsp_types::SemanticTokensRangeParams| {
                tokens(asked, asked.placed().span(of.range))
            })
        }
        Formatting::METHOD => {
            about(texts, params, |asked: &Asked, _: &lsp_types::DocumentFormattingParams| {
                asked.edits(&asked.analysis.format())
            })
        }
        RangeFormatting::METHOD => {
            about(texts, params, |asked: &Asked, of: &lsp_types::DocumentRangeFormattingParams| {
                asked.edits(&asked.analysis.format_part(asked.placed().span(of.range)))
            })
        }
        CodeActionRequest::METHOD => {
            about(texts, params, |asked: &Asked, of: &lsp_types::CodeActionParams| {
                let part = asked.placed().span(of.range);
                asked.analysis.remedies(part).iter().map(|remedy| action(asked, remedy)).collect::<Vec<_>>()
            })
        }
        _ => Err(Refusal::new(ErrorCode::MethodNotFound, format!("unknown method `{method}`"))),
    }
}

/// Returns the source that the parameters name. Returns `None` if the open text is not a source.
fn asked(texts: &mut OpenTexts, params: &Value) -> Result<Option<Asked>, Refusal> {
    let uri = params["textDocument"]["uri"].as_str().unwrap_or_default();
    let refused = |why: String| Refusal::new(ErrorCode::InvalidParams, why);
    let parsed = Uri::from_str(uri).map_err(|error| refused(format!("`{uri}` is not a URI: {error}")))?;
    if texts.get(uri).is_none() {
        return Err(refused(format!("`{uri}` is not open")));
    }
    let unit = texts.unit;
    Ok(texts.analysis(uri).map(|analysis| Asked { uri: parsed, analysis, unit }))
}

/// Answers a request about a source. Returns `null` if the text is not a source.
fn about<P, R>(
    texts: &mut OpenTexts,
    params: Value,
    answer: impl FnOnce(&Asked, &P) -> R,
) -> Result<Value, Refusal>
where
    P: for<'de> Deserialize<'de>,
    R: Serialize,
{
    try_about(texts, params, |asked, params| Ok(answer(asked, params)))
}

/// Answers a request like [`about`]. The answer may be an error.
fn try_about<P, R>(
    texts: &mut OpenTexts,
    params: Value,
    answer: impl FnOnce(&Asked, &P) -> Result<R, Refusal>,
) -> Result<Value, Refusal>
where
    P: for<'de> Deserialize<'de>,
    R: Serialize,
{
    let read: P = read_params(params.clone())?;
    match asked(texts, &params)? {
        Some(asked) => Ok(json!(answer(&asked, &read)?)),
        None => Ok(Value::Null),
    }
}

fn markup(value: &str, is_plain: bool) -> MarkupContent {
    match is_plain {
        true => MarkupContent { kind: MarkupKind::PlainText, value: convert::plain_text(value) },
        false => MarkupContent { kind: MarkupKind::Markdown, value: value.to_owned() },
    }
}

fn hover(asked: &Asked, position: Position, is_plain: bool) -> Option<Hover> {
    let found = asked.analysis.hover(asked.offset(position))?;
    Some(Hover {
        contents: HoverContents::Markup(markup(&found.markdown, is_plain)),
        range: Some(asked.placed().range(found.span)),
    })
}

fn completions(asked: &Asked, position: Position) -> Vec<CompletionItem> {
    let machine = asked.analysis.isa().name();
    let item = |(number, proposal): (usize, Proposal)| {
        let Proposal { sort, label, detail, span, text } = proposal;
        let mnemonic = (sort == ProposalSort::Mnemonic).then(|| label.clone());
        let data = mnemonic.map(|mnemonic| json!(ItemData { machine: machine.to_owned(), mnemonic }));
        // The client compares this text with the part of the instruction that the user has already written.
        let written = asked.analysis.text()[span.start..span.end].to_owned();
        CompletionItem {
            filter_text: (sort == ProposalSort::Form).then_some(written),
            kind: Some(convert::item_kind(sort)),
            detail: (!detail.is_empty()).then_some(detail),
            text_edit: Some(CompletionTextEdit::Edit(TextEdit::new(asked.placed().range(span), text))),
            sort_text: Some(format!("{number:05}")),
            label,
            data,
            ..CompletionItem::default()
        }
    };
    asked.analysis.complete(asked.offset(position)).into_iter().enumerate().map(item).collect()
}

/// Returns the item with documentation. The documentation lists the forms of a mnemonic.
fn resolved(mut item: CompletionItem, is_plain: bool) -> Result<Value, Refusal> {
    let data = item.data.clone().and_then(|data| serde_json::from_value::<ItemData>(data).ok());
    if let Some(ItemData { machine, mnemonic }) = data
        && let Ok(isa) = Isa::from_str(&machine)
    {
        item.documentation =
            mnemonic_help(isa, &mnemonic).map(|help| Documentation::MarkupContent(markup(&help, is_plain)));
    }
    Ok(json!(item))
}

fn definition(texts: &mut OpenTexts, params: Value) -> Result<Value, Refusal> {
    let read: lsp_types::GotoDefinitionParams = read_params(params.clone())?;
    let Some(asked) = asked(texts, &params)? else { return Ok(Value::Null) };
    let place = asked.analysis.definition(asked.offset(read.text_document_position_params.position));
    Ok(json!(place.and_then(|place| location(texts, &asked, &place))))
}

fn references(texts: &mut OpenTexts, params: Value) -> Result<Value, Refusal> {
    let read: lsp_types::ReferenceParams = read_params(params.clone())?;
    let Some(asked) = asked(texts, &params)? else { return Ok(Value::Null) };
    let at = asked.offset(read.text_document_position.position);
    let places = asked.analysis.references(at, read.context.include_declaration);
    Ok(json!(places.iter().filter_map(|place| location(texts, &asked, place)).collect::<Vec<_>>()))
}

/// Returns the location of a position. The position is in the source or in a file that the source includes.
fn location(texts: &OpenTexts, asked: &Asked, place: &FilePlace) -> Option<Location> {
    let Some(file) = &place.file else {
        return Some(Location::new(asked.uri.clone(), asked.placed().range(place.span)));
    };
    let path = texts.get(asked.uri.as_str())?.beside(file)?;
    let text = asked.analysis.included_text(file)?;
    let range = TextPlaces { text, lines: &LineStarts::new(text), unit: asked.unit }.range(place.span);
    Some(Location::new(Uri::from_str(&convert::uri_of(&path)).ok()?, range))
}

fn highlights(asked: &Asked, position: Position) -> Vec<DocumentHighlight> {
    let kind = |defines| if defines { DocumentHighlightKind::WRITE } else { DocumentHighlightKind::READ };
    let found = asked.analysis.highlights(asked.offset(position)).into_iter();
    found
        .map(|(span, defines)| DocumentHighlight {
            range: asked.placed().range(span),
            kind: Some(kind(defines)),
        })
        .collect()
}

fn renamable(asked: &Asked, position: Position) -> Result<PrepareRenameResponse, Refusal> {
    let found = asked.analysis.renamable(asked.offset(position));
    let (span, name) = found.map_err(|error| Refusal::new(ErrorCode::RequestFailed, error.to_string()))?;
    Ok(PrepareRenameResponse::RangeWithPlaceholder {
        range: asked.placed().range(span),
        placeholder: name.to_owned(),
    })
}

fn rename(asked: &Asked, params: &lsp_types::RenameParams) -> Result<WorkspaceEdit, Refusal> {
    let at = asked.offset(params.text_document_position.position);
    let changes = asked.analysis.rename(at, &params.new_name);
    let changes = changes.map_err(|error| Refusal::new(ErrorCode::RequestFailed, error.to_string()))?;
    Ok(asked.workspace_edit(asked.edits(&changes)))
}

#[allow(deprecated, reason = "the protocol's type has a field that is deprecated")]
fn symbol(asked: &Asked, entry: &OutlineEntry) -> DocumentSymbol {
    let inside: Vec<DocumentSymbol> = entry.inside.iter().map(|entry| symbol(asked, entry)).collect();
    DocumentSymbol {
        name: entry.name.clone(),
        detail: Some(entry.sort.noun().to_owned()),
        kind: convert::symbol_kind(entry.sort),
        tags: None,
        deprecated: None,
        range: asked.placed().range(entry.whole),
        selection_range: asked.placed().range(entry.span),
        children: (!inside.is_empty()).then_some(inside),
    }
}

fn folds(asked: &Asked) -> Vec<FoldingRange> {
    let fold = |fold: reconverge_language::FoldedLines| FoldingRange {
        start_line: fold.first as u32,
        end_line: fold.last as u32,
        kind: Some(if fold.comment { FoldingRangeKind::Comment } else { FoldingRangeKind::Region }),
        ..FoldingRange::default()
    };
    asked.analysis.folds().into_iter().map(fold).collect()
}

fn hints(asked: &Asked, range: Range, shown: &[HintSort]) -> Vec<InlayHint> {
    let found = asked.analysis.hints(asked.placed().span(range)).into_iter();
    let hint = |hint: reconverge_language::InlineHint| InlayHint {
        position: asked.placed().position(hint.at),
        label: InlayHintLabel::String(hint.text),
        kind: None,
        text_edits: None,
        tooltip: None,
        padding_left: Some(hint.sort != HintSort::Address),
        padding_right: Some(hint.sort == HintSort::Address),
        data: None,
    };
    found.filter(|found| shown.contains(&found.sort)).map(hint).collect()
}

fn tokens(asked: &Asked, part: Span) -> SemanticTokens {
    let TextPlaces { text, lines, unit } = asked.placed();
    let (mut data, mut line, mut before) = (Vec::new(), 0, 0);
    for coloured in asked.analysis.colours(part) {
        let Span { start, end } = coloured.span;
        let own = lines.line(start);
        // The function measures the width from the previous token of the same line, not from the start of the line. So
        // even a long line is read only once.
        let from = if own == line { before } else { lines.start(text, own) };
        let token_type = Colour::ALL.iter().position(|colour| *colour == coloured.colour).unwrap_or(0);
        data.push(SemanticToken {
            delta_line: (own - line) as u32,
            delta_start: unit.width(&text[from..start]) as u32,
            length: unit.width(&text[start..end]) as u32,
            token_type: token_type as u32,
            token_modifiers_bitset: u32::from(coloured.defines),
        });
        (line, before) = (own, start);
    }
    SemanticTokens { result_id: None, data }
}

fn action(asked: &Asked, remedy: &Remedy) -> CodeActionOrCommand {
    let change = TextChange { span: remedy.span, text: remedy.text.clone() };
    CodeActionOrCommand::CodeAction(CodeAction {
        title: remedy.title.clone(),
        kind: Some(CodeActionKind::QUICKFIX),
        diagnostics: Some(vec![diagnostic(asked.placed(), &remedy.marker, Vec::new())]),
        edit: Some(asked.workspace_edit(asked.edits(&[change]))),
        is_preferred: Some(true),
        ..CodeAction::default()
    })
}

/// Returns the diagnostics of a text, or `None` if the text is not open.
pub(super) fn diagnostics(texts: &mut OpenTexts, uri: &str) -> Option<PublishDiagnosticsParams> {
    let parsed = Uri::from_str(uri).ok()?;
    let open = texts.get(uri)?;
    let version = Some(open.version);
    if let Some(markers) = texts.field_markers(uri) {
        let placed = TextPlaces { text: &open.text, lines: &open.lines, unit: texts.unit };
        let diagnostics = markers.iter().map(|marker| diagnostic(placed, marker, Vec::new())).collect();
        return Some(PublishDiagnosticsParams { uri: parsed, diagnostics, version });
    }
    let unit = texts.unit;
    let asked = Asked { uri: parsed.clone(), analysis: texts.analysis(uri)?, unit };
    let of_marker = |marker: &Marker| {
        let related = marker.related.iter().filter_map(|(place, message)| {
            let location = location(texts, &asked, place)?;
            Some(DiagnosticRelatedInformation { location, message: message.clone() })
        });
        diagnostic(asked.placed(), marker, related.collect())
    };
    let diagnostics = asked.analysis.markers().iter().map(of_marker).collect();
    Some(PublishDiagnosticsParams { uri: parsed, diagnostics, version })
}

fn diagnostic(
    placed: TextPlaces<'_>,
    marker: &Marker,
    related: Vec<DiagnosticRelatedInformation>,
) -> Diagnostic {
    Diagnostic {
        range: placed.range(marker.span),
        severity: Some(convert::severity(marker.level)),
        code: marker.rule.map(|rule| NumberOrString::String(rule.to_owned())),
        source: Some("reconverge".to_owned()),
        message: marker.message.clone(),
        related_information: (!related.is_empty()).then_some(related),
        ..Diagnostic::default()
    }
}
