//! Breakpoints: a request replaces all of its kind.

use serde_json::{Value, json};

use super::{Adapter, LISTING, Refused, Shown, byte_address, spelled, unit_bytes};
use crate::debugger::command;
use crate::debugger::stop::{Hits, On, Only, Watched};

impl Adapter {
    fn replace(&mut self, of: fn(&mut Adapter) -> &mut Vec<usize>) -> Result<(), Refused> {
        let old = std::mem::take(of(self));
        let debugger = self.debugger()?;
        for number in old {
            debugger.stops.remove(number);
        }
        Ok(())
    }

    /// Adds a stop with what a breakpoint's `condition` and `hitCondition` say.
    fn add(&mut self, on: On, wanted: &Value, text: &str) -> Result<usize, Refused> {
        let debugger = self.debugger()?;
        let stated = |name: &str| wanted[name].as_str().filter(|text| !text.trim().is_empty());
        let condition = stated("condition").map(|text| command::condition_of(debugger, text)).transpose()?;
        let hits = stated("hitCondition")
            .map(|text| Hits::parse(text).ok_or_else(|| command::no_hits(text)))
            .transpose()?;
        Ok(debugger.stops.add(on, Only { group: None, condition, hits }, text))
    }

    pub(super) fn set_breakpoints(&mut self, arguments: &Value) -> Result<Value, Refused> {
        self.replace(|adapter| &mut adapter.of_source)?;
        let listing = arguments["source"]["sourceReference"].as_u64() == Some(LISTING);
        let mut answers = Vec::new();
        for wanted in arguments["breakpoints"].as_array().map_or(&[][..], Vec::as_slice) {
            let line = wanted["line"].as_u64().unwrap_or(0) as usize;
            let address =
                line.checked_sub(1).and_then(|line| self.debugger.as_ref()?.lines().get(line)?.address);
            answers.push(match address.filter(|_| listing) {
                None => {
                    json!({ "verified": false, "message": "stops are set in the listing, at an instruction" })
                }
                Some(address) => match self.add(On::Address(address), wanted, &format!("line {line}")) {
                    Err(why) => json!({ "verified": false, "message": why }),
                    Ok(number) => {
                        self.of_source.push(number);
                        json!({ "id": number, "verified": true, "line": line })
                    }
                },
            });
        }
        Ok(json!({ "breakpoints": answers }))
    }

    pub(super) fn set_instruction_breakpoints(&mut self, arguments: &Value) -> Result<Value, Refused> {
        self.replace(|adapter| &mut adapter.of_instructions)?;
        let mut answers = Vec::new();
        for wanted in arguments["breakpoints"].as_array().map_or(&[][..], Vec::as_slice) {
            let reference = wanted["instructionReference"].as_str().unwrap_or("");
            let offset = wanted["offset"].as_i64().unwrap_or(0);
            let byte = byte_address(reference).and_then(|at| at.checked_add(offset));
            let debugger = self.debugger()?;
            let unit = unit_bytes(debugger);
            let address =
                byte.filter(|byte| byte % unit == 0).and_then(|byte| u32::try_from(byte / unit).ok());
            let address = address.filter(|address| debugger.line(*address).is_some());
            answers.push(match address {
                None => json!({ "verified": false, "message": "no instruction starts there" }),
                Some(address) => match self.add(On::Address(address), wanted, reference) {
                    Err(why) => json!({ "verified": false, "message": why }),
                    Ok(number) => {
                        self.of_instructions.push(number);
                        json!({
                            "id": number, "verified": true,
                            "instructionReference": spelled(i64::from(address) * unit),
                        })
                    }
                },
            });
        }
        Ok(json!({ "breakpoints": answers }))
    }

    pub(super) fn data_breakpoint_info(&mut self, arguments: &Value) -> Result<Value, Refused> {
        let name = arguments["name"].as_str().unwrap_or("").to_owned();
        let shown = match arguments["variablesReference"].as_u64() {
            None | Some(0) => None,
            Some(_) => Some(self.shown_by(arguments)?),
        };
        let lane = match shown {
            Some(Shown::Lane(_, lane)) => Some(lane),
            Some(Shown::Lanes(_)) | None => None,
            Some(_) => return Ok(json!({ "dataId": null, "description": "only registers are watched" })),
        };
        let debugger = self.debugger()?;
        match command::register(debugger, &name) {
            Err(why) => Ok(json!({ "dataId": null, "description": why })),
            Ok(_) => {
                let of = lane.map(|lane| format!("@{}", lane.0)).unwrap_or_default();
                Ok(json!({
                    "dataId": format!("{name}{of}"), "description": format!("{name}{of} changes"),
                    "accessTypes": ["write"], "canPersist": true,
                }))
            }
        }
    }

    pub(super) fn set_data_breakpoints(&mut self, arguments: &Value) -> Result<Value, Refused> {
        self.replace(|adapter| &mut adapter.of_data)?;
        let mut answers = Vec::new();
        for wanted in arguments["breakpoints"].as_array().map_or(&[][..], Vec::as_slice) {
            let id = wanted["dataId"].as_str().unwrap_or("").to_owned();
            let debugger = self.debugger()?;
            let place = command::place_of(debugger, &id);
            let on = place.map(|(register, lane)| On::Change(Watched::Register(register, lane)));
            answers.push(match on {
                Err(why) => json!({ "verified": false, "message": why }),
                Ok(on) => match self.add(on, wanted, &id) {
                    Err(why) => json!({ "verified": false, "message": why }),
                    Ok(number) => {
                        self.of_data.push(number);
                        json!({ "id": number, "verified": true })
                    }
                },
            });
        }
        Ok(json!({ "breakpoints": answers }))
    }

    pub(super) fn set_filters(&mut self, arguments: &Value) -> Result<Value, Refused> {
        self.replace(|adapter| &mut adapter.of_filters)?;
        let mut answers = Vec::new();
        for filter in arguments["filters"].as_array().map_or(&[][..], Vec::as_slice) {
            let on = match filter.as_str() {
                Some("diverge") => On::Diverge,
                Some("reconverge") => On::Reconverge,
                _ => {
                    let message = format!("there is no filter {filter}; there is diverge, reconverge");
                    answers.push(json!({ "verified": false, "message": message }));
                    continue;
                }
            };
            let number = self.add(on, &Value::Null, filter.as_str().unwrap_or(""))?;
            self.of_filters.push(number);
            answers.push(json!({ "id": number, "verified": true }));
        }
        Ok(json!({ "breakpoints": answers }))
    }
}
