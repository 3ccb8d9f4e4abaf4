//! Breakpoints: a request replaces all of its kind.

use serde_json::{Value, json};

use super::{Adapter, LISTING, Refused, Shown, byte_address, spelled, unit_bytes};
use crate::debugger::stop::{Hits, On, Only, Watched};
use crate::debugger::{Debugger, command};

/// A requested breakpoint: the place, its text, and the fields of the answer other than the number.
type Wanted = (On, String, Value);

/// Adds a stop with what a breakpoint's `condition` and `hitCondition` say.
fn add(debugger: &mut Debugger, on: On, wanted: &Value, text: &str) -> Result<usize, Refused> {
    let stated = |name: &str| wanted[name].as_str().filter(|text| !text.trim().is_empty());
    let condition = stated("condition").map(|text| command::condition_of(debugger, text)).transpose()?;
    let hits = stated("hitCondition")
        .map(|text| Hits::parse(text).ok_or_else(|| command::no_hits(text)))
        .transpose()?;
    Ok(debugger.stops.add(on, Only { group: None, condition, hits }, text))
}

impl Adapter {
    /// Replaces the stops that `of` has by those of a list, an element of which `read` reads; answers each.
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

    pub(super) fn set_breakpoints(&mut self, arguments: &Value) -> Result<Value, Refused> {
        let listing = arguments["source"]["sourceReference"].as_u64() == Some(LISTING);
        self.replace(
            |adapter| &mut adapter.of_source,
            &arguments["breakpoints"],
            |debugger, wanted| {
                let line = wanted["line"].as_u64().unwrap_or(0) as usize;
                let address = line.checked_sub(1).and_then(|line| debugger.lines().get(line)?.address);
                let address =
                    address.filter(|_| listing).ok_or("stops are set in the listing, at an instruction")?;
                Ok((On::Address(address), format!("line {line}"), json!({ "line": line })))
            },
        )
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
            Some(_) => return Ok(json!({ "dataId": null, "description": "only registers are watched" })),
        };
        Ok(match command::register(self.debugger()?, name) {
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
                let (register, lane) = command::place_of(debugger, id)?;
                Ok((On::Change(Watched::Register(register, lane)), id.to_owned(), json!({})))
            },
        )
    }

    pub(super) fn set_filters(&mut self, arguments: &Value) -> Result<Value, Refused> {
        self.replace(
            |adapter| &mut adapter.of_filters,
            &arguments["filters"],
            |_, filter| {
                let (on, text) = match filter.as_str() {
                    Some(text @ "diverge") => (On::Diverge, text),
                    Some(text @ "reconverge") => (On::Reconverge, text),
                    _ => return Err(format!("there is no filter {filter}; there is diverge, reconverge")),
                };
                Ok((on, text.to_owned(), json!({})))
            },
        )
    }
}
