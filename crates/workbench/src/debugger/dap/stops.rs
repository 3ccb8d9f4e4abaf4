//! Converts the breakpoints of the client to stops of the debugger. A request replaces all breakpoints of one kind.

use serde_json::{Value, json};

use super::{Adapter, Event, LISTING, Refused, Shown, byte_address, spelled, unit_bytes};
use crate::debugger::formula::Formula;
use crate::debugger::log::LogText;
use crate::debugger::stop::{FlowChange, Hits, On, Only, Watched};
use crate::debugger::{Debugger, names};

/// A requested breakpoint. The fields are the event that stops the launch, the text for the list of stops, and the
/// answer to the client. The answer does not contain the number of the stop yet.
type Wanted = (On, String, Value);

/// Adds a stop for a breakpoint, with the breakpoint's `condition`, `hitCondition` and `logMessage`.
fn add(debugger: &mut Debugger, on: On, wanted: &Value, text: &str) -> Result<usize, Refused> {
    let stated = |name: &str| wanted[name].as_str().filter(|text| !text.trim().is_empty());
    let condition = stated("condition").map(|text| Formula::parse(debugger, text)).transpose()?;
    let hits = stated("hitCondition")
        .map(|text| Hits::parse(text).ok_or_else(|| names::no_hits(text)))
        .transpose()?;
    let log = stated("logMessage").map(|text| LogText::parse(debugger, text)).transpose()?;
    Ok(debugger.stops.add(on, Only { group: None, condition, hits, log }, text))
}

impl Adapter {
    /// Removes the stops in the list `of`, and adds a stop for each breakpoint in `list`. `read` parses one breakpoint.
    /// Returns an answer for each breakpoint.
    fn replace(
        &mut self,
        of: fn(&mut Adapter) -> &mut Vec<usize>,
        list: &Value,
        read: impl Fn(&Debugger, &Value) -> Result<Wanted, Refused>,
    ) -> Result<Value, Refused> {
        let old = std::mem::take(of(self));
        let debugger = self.debugger()?;
        for number in old {
            debugger.stops.remove(number);
        }
        let (mut numbers, mut answers) = (Vec::new(), Vec::new());
        for wanted in list.as_array().map_or(&[][..], Vec::as_slice) {
            let added = read(debugger, wanted).and_then(|(on, text, mut answer)| {
                let number = add(debugger, on, wanted, &text)?;
                numbers.push(number);
                answer["id"] = json!(number);
                answer["verified"] = json!(true);
                Ok(answer)
            });
            answers.push(added.unwrap_or_else(|why| json!({ "verified": false, "message": why })));
        }
        *of(self) = numbers;
        Ok(json!({ "breakpoints": answers }))
    }

    /// Sets the breakpoints of the listing or of a source file. The adapter has three lists of stops: one for the
    /// listing, one for the user's source, and one for all other files.
    pub(super) fn set_breakpoints(&mut self, arguments: &Value) -> Result<Value, Refused> {
        let list = &arguments["breakpoints"];
        if is_listing(&arguments["source"]) {
            return self.replace(
                |adapter| &mut adapter.of_listing,
                list,
                |debugger, wanted| {
                    let line = wanted["line"].as_u64().unwrap_or(0) as usize;
                    let address = line.checked_sub(1).and_then(|line| debugger.lines().get(line)?.address);
                    let address = address.ok_or("line not found in the listing")?;
                    Ok((On::Address(address), format!("line {line}"), json!({ "line": line })))
                },
            );
        }
        let path = arguments["source"]["path"].as_str().unwrap_or("").to_owned();
        let same = self.debugger()?.source().is_some_and(|source| source.is_at(&path));
        if !same {
            // Breakpoints in a file that is not the program's source must not replace the breakpoints in the program's
            // source.
            return self.replace(
                |adapter| &mut adapter.of_other,
                list,
                |debugger, _| Err(no_source(debugger, &path)),
            );
        }
        let answer = self.replace(
            |adapter| &mut adapter.of_source,
            list,
            |debugger, wanted| {
                let line = wanted["line"].as_u64().unwrap_or(0) as usize;
                let (address, bound) = bound(debugger, line)?;
                let mut answer =
                    json!({ "line": bound, "instructionReference": reference(debugger, address) });
                if bound != line {
                    answer["message"] =
                        json!(format!("line {line} has no instruction; the stop is at line {bound}"));
                }
                Ok((On::Address(address), format!("line {bound}"), answer))
            },
        )?;
        self.lines_wanted = list
            .as_array()
            .map_or(&[][..], Vec::as_slice)
            .iter()
            .zip(answers(&answer))
            .filter_map(|(wanted, answer)| {
                Some((answer["id"].as_u64()? as usize, wanted["line"].as_u64()? as usize))
            })
            .collect();
        Ok(answer)
    }

    /// Moves the stops of the user's source after a restart. A restart reads the source again, so lines may have new
    /// addresses. Reports the new positions to the client.
    pub(super) fn bind_again(&mut self, events: &mut Vec<Event>) -> Result<(), Refused> {
        for (number, line) in self.lines_wanted.clone() {
            let debugger = self.debugger()?;
            let changed = match bound(debugger, line) {
                Ok((address, line)) => {
                    debugger.stops.move_to(number, address);
                    json!({ "id": number, "verified": true, "line": line })
                }
                Err(why) => {
                    debugger.stops.remove(number);
                    json!({ "id": number, "verified": false, "message": why })
                }
            };
            events.push(("breakpoint", json!({ "reason": "changed", "breakpoint": changed })));
        }
        Ok(())
    }

    /// Returns the lines in a range that have an instruction.
    pub(super) fn breakpoint_locations(&mut self, arguments: &Value) -> Result<Value, Refused> {
        let first = arguments["line"].as_u64().unwrap_or(0) as usize;
        let last = arguments["endLine"].as_u64().map_or(first, |line| line as usize);
        let debugger = self.debugger()?;
        let lines = match is_listing(&arguments["source"]) {
            true => (first.max(1)..=last.min(debugger.lines().len())).collect(),
            false => {
                let path = arguments["source"]["path"].as_str().unwrap_or("");
                let source = debugger.source().filter(|source| source.is_at(path));
                let source = source.ok_or_else(|| no_source(debugger, path))?;
                source.lines_with_instructions(first, last)
            }
        };
        let places: Vec<Value> = lines.into_iter().map(|line| json!({ "line": line })).collect();
        Ok(json!({ "breakpoints": places }))
    }

    /// Returns the address and line of the instruction that a `gotoTargets` request names.
    pub(super) fn line_address(&mut self, arguments: &Value) -> Result<(u32, usize), Refused> {
        let line = arguments["line"].as_u64().unwrap_or(0) as usize;
        let debugger = self.debugger()?;
        if is_listing(&arguments["source"]) {
            let address = line.checked_sub(1).and_then(|line| debugger.lines().get(line)?.address);
            return address
                .map(|address| (address, line))
                .ok_or_else(|| "line not found in the listing".to_owned());
        }
        let path = arguments["source"]["path"].as_str().unwrap_or("");
        match debugger.source().is_some_and(|source| source.is_at(path)) {
            true => bound(debugger, line),
            false => Err(no_source(debugger, path)),
        }
    }

    pub(super) fn set_instruction_breakpoints(&mut self, arguments: &Value) -> Result<Value, Refused> {
        self.replace(
            |adapter| &mut adapter.of_instructions,
            &arguments["breakpoints"],
            |debugger, wanted| {
                let reference = wanted["instructionReference"].as_str().unwrap_or("");
                let offset = wanted["offset"].as_i64().unwrap_or(0);
                let byte = byte_address(reference).and_then(|at| at.checked_add(offset));
                let unit = unit_bytes(debugger);
                let address =
                    byte.filter(|byte| byte % unit == 0).and_then(|byte| u32::try_from(byte / unit).ok());
                let address = address.filter(|address| debugger.line(*address).is_some());
                let address = address.ok_or("no instruction starts there")?;
                let answer = json!({ "instructionReference": spelled(i64::from(address) * unit) });
                Ok((On::Address(address), reference.to_owned(), answer))
            },
        )
    }

    pub(super) fn data_breakpoint_info(&mut self, arguments: &Value) -> Result<Value, Refused> {
        let name = arguments["name"].as_str().unwrap_or("");
        let shown = match arguments["variablesReference"].as_u64() {
            None | Some(0) => None,
            Some(_) => Some(self.shown_by(arguments)?),
        };
        let of = match shown {
            Some(Shown::Lane(_, lane)) => format!("@{}", lane.0),
            Some(Shown::Lanes(_)) | None => String::new(),
            Some(_) => return Ok(json!({ "dataId": null, "description": "only registers can be watched" })),
        };
        Ok(match self.debugger()?.register(name) {
            Err(why) => json!({ "dataId": null, "description": why }),
            Ok(_) => json!({
                "dataId": format!("{name}{of}"), "description": format!("{name}{of} changes"),
                "accessTypes": ["write"], "canPersist": true,
            }),
        })
    }

    pub(super) fn set_data_breakpoints(&mut self, arguments: &Value) -> Result<Value, Refused> {
        self.replace(
            |adapter| &mut adapter.of_data,
            &arguments["breakpoints"],
            |debugger, wanted| {
                let id = wanted["dataId"].as_str().unwrap_or("");
                let (register, lane) = names::place_of(debugger, id)?;
                Ok((On::Change(Watched::Register(register, lane)), id.to_owned(), json!({})))
            },
        )
    }

    pub(super) fn set_filters(&mut self, arguments: &Value) -> Result<Value, Refused> {
        self.replace(
            |adapter| &mut adapter.of_filters,
            &arguments["filters"],
            |_, filter| {
                let change = FlowChange::ALL.into_iter().find(|change| filter == change.name());
                let all = FlowChange::ALL.map(FlowChange::name).join(", ");
                let change =
                    change.ok_or_else(|| format!("unknown filter {filter}; expected one of {all}"))?;
                Ok((On::Flow(change), change.name().to_owned(), json!({})))
            },
        )
    }
}

/// Returns whether a source is the listing.
fn is_listing(source: &Value) -> bool {
    source["sourceReference"].as_u64() == Some(LISTING)
}

/// Returns the address and line of the first instruction at or after a line of the user's source.
fn bound(debugger: &Debugger, line: usize) -> Result<(u32, usize), Refused> {
    let source = debugger.source().ok_or_else(|| no_source(debugger, ""))?;
    let found = source.instruction_at(line).filter(|_| line > 0);
    found.ok_or_else(|| format!("{} has no instruction at or after line {line}", source.name()))
}

/// Returns the message that a file is not the source of the program.
fn no_source(debugger: &Debugger, path: &str) -> Refused {
    match debugger.source() {
        Some(source) => {
            format!("`{path}` is not the source of this program; the source is {}", source.path().display())
        }
        None => "the source of the program is unknown; set stops at instructions of the listing".to_owned(),
    }
}

/// Returns the instruction reference for an address.
fn reference(debugger: &Debugger, address: u32) -> String {
    spelled(i64::from(address) * unit_bytes(debugger))
}

/// Iterates over the breakpoints in an answer.
fn answers(answer: &Value) -> impl Iterator<Item = &Value> {
    answer["breakpoints"].as_array().into_iter().flatten()
}
