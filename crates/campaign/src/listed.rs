//! A fault in a list. The list is `[[fault]]` of a campaign file, or another file (`lists.rs`).

use serde::{Deserialize, Serialize};

use crate::site::{Model, Site};

/// A fault in a list. If an optional field has no default and is absent, the seed determines the value of the field.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct ListedFault {
    /// The site. This field is required.
    pub site: Option<Site>,
    /// The fault model (default: `flip`).
    pub model: Option<Model>,
    /// Index of the fault's instruction in the golden run, counted from 0. The fault changes the state before this
    /// instruction. Only a fault in a destination register changes the state after this instruction.
    pub step: Option<u64>,
    /// Name of the word to change, as in results: `$r1`, `token 2 mask`, `g 0x100`.
    pub place: Option<String>,
    /// The lane, if the word belongs to a lane.
    pub lane: Option<u32>,
    /// The bit that flips, or the bit that is stuck.
    pub bit: Option<u32>,
    /// The bits that flip. This field is an alternative to `bit`.
    pub xor: Option<u64>,
    /// The value of the word after the fault. This field is an alternative to `bit`.
    pub value: Option<u64>,
}

/// A fault in a list, and the position of the fault in the list.
#[derive(Debug)]
pub(crate) struct PlacedFault {
    pub(crate) fault: ListedFault,
    pub(crate) file: String,
    /// The position of the fault in the list. Messages name this position. In a text file, the position has the form `line 42`. In other lists, the
    /// position has the form `fault 3`.
    pub(crate) place: String,
}

impl PlacedFault {
    /// Returns the name of the file, and a message that starts with the fault's position.
    pub(crate) fn wrong(&self, why: &str) -> (String, String) {
        (self.file.clone(), format!("{}: {why}", self.place))
    }
}

impl ListedFault {
    /// Checks the fields of the fault that do not depend on a launch. `count` is the key `bits` of the campaign file.
    ///
    /// # Errors
    /// Returns a message that names the field.
    pub(crate) fn check(&self, count: Option<u32>) -> Result<(), String> {
        if self.site.is_none() {
            return Err("missing site; add site = \"register\"".to_owned());
        }
        let stated = [self.bit.is_some(), self.xor.is_some(), self.value.is_some()];
        if stated.iter().filter(|stated| **stated).count() > 1 {
            return Err("expected one of bit, xor and value".to_owned());
        }
        if let Some(bit) = self.bit.filter(|bit| *bit > 63) {
            return Err(format!("bit {bit}: expected 0 to 63"));
        }
        if self.xor == Some(0) {
            return Err("xor = 0 (or equal before and after) does not flip a bit; state the bits that flip"
                .to_owned());
        }
        let Some(stated) = self.stated() else {
            return match (self.model, count) {
                (Some(Model::Bits), None) => {
                    Err("missing number of bits for the model `bits`; add bits = 3 to the campaign file, or xor here"
                        .to_owned())
                }
                _ => Ok(()),
            };
        };
        match (self.model, self.value) {
            (Some(Model::Zero), None | Some(1..)) => Err(format!(
                "model `zero` sets the word to 0, which contradicts {stated}: leave one of them out"
            )),
            (Some(model), Some(_)) if model.stuck().is_some() => Err(format!(
                "model `{}` changes one bit, which contradicts {stated}; state the bit",
                model.name()
            )),
            _ => Ok(()),
        }
    }

    /// Returns the fault model. If the fault does not state a model, the fields of the fault determine the model.
    pub(crate) fn model(&self) -> Model {
        self.model.unwrap_or(match (self.value, self.xor) {
            (Some(_), _) => Model::Random,
            (None, Some(xor)) if xor.count_ones() > 1 => Model::Bits,
            _ => Model::Flip,
        })
    }

    /// Returns the key that states how the word changes, and the value of this key.
    fn stated(&self) -> Option<String> {
        let bit = self.bit.map(|bit| format!("bit = {bit}"));
        let xor = self.xor.map(|xor| format!("xor = {xor:#x}"));
        bit.or(xor).or(self.value.map(|value| format!("value = {value:#x}")))
    }

    /// Returns the bits that the fault states for a word: the bits that flip, or the stuck bits. Returns `None` if the
    /// fault does not state bits or a value. In this case, the model chooses the bits. `name` and `before` are the name
    /// and the value of the word. `exist` is the mask of the word's bits. `count` is the number of bits that
    /// [`Model::Bits`] flips. For other models, `count` is 0.
    ///
    /// # Errors
    /// Fails if the word does not have the stated bits, or if the model cannot make the stated change.
    pub(crate) fn pattern(
        &self,
        before: u64,
        exist: u64,
        count: u32,
        name: &str,
    ) -> Result<Option<u64>, String> {
        let Some(stated) = self.stated() else { return Ok(None) };
        let of_value = self.value.map(|value| before ^ value);
        let Some(pattern) = self.bit.map(|bit| 1 << bit).or(self.xor).or(of_value) else { return Ok(None) };
        if pattern & !exist != 0 {
            let word = self.lane.map_or(name.to_owned(), |lane| format!("{name} of lane {lane}"));
            return Err(format!("{stated} does not fit: {word} has the bits {exist:#x}"));
        }
        let (flips, all) = (pattern.count_ones(), exist.count_ones());
        let between = |low: u32, high: u32| (low + 1..high).all(|place| exist >> place & 1 == 0);
        let next = flips == 2 && between(pattern.trailing_zeros(), 63 - pattern.leading_zeros());
        let contradicted = match self.model {
            Some(Model::Flip) if flips != 1 => "flips one bit".to_owned(),
            Some(Model::Double) if !next && (flips, all) != (1, 1) => {
                "flips two bits next to each other".to_owned()
            }
            Some(Model::Bits) if count > 0 && flips != count.min(all) => {
                format!("flips {count} bits (bits = {count})")
            }
            Some(Model::StuckAt0 | Model::StuckAt1) if flips != 1 => "changes one bit".to_owned(),
            _ => return Ok(Some(pattern)),
        };
        let model = self.model().name();
        Err(format!(
            "model `{model}` {contradicted}, which contradicts {stated} ({flips} bits of {name} change): leave one of them out"
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_that_contradicts_the_stated_bits_is_refused_with_both() {
        let wrong = |model: &str, stated: &str| {
            let text = format!("site = \"register\"\nmodel = \"{model}\"\n{stated}\n");
            let fault: ListedFault = toml::from_str(&text).unwrap();
            fault.check(Some(3)).and_then(|()| fault.pattern(5, 0xff, 3, "$r1")).err()
        };
        for (model, stated) in [
            ("flip", "xor = 3"),
            ("flip", "value = 6"),
            ("double", "bit = 1"),
            ("double", "xor = 5"),
            ("bits", "xor = 3"),
            ("zero", "bit = 1"),
            ("zero", "value = 2"),
            ("stuck-at-1", "xor = 3"),
            ("stuck-at-0", "value = 4"),
        ] {
            let why = wrong(model, stated).unwrap();
            let key = stated.split(' ').next().unwrap();
            assert!(why.contains(&format!("model `{model}`")) && why.contains(&format!("{key} = ")), "{why}");
        }
        for (model, stated) in [
            ("flip", "xor = 4"),
            ("flip", "value = 4"),
            ("double", "xor = 6"),
            ("bits", "xor = 7"),
            ("zero", "value = 0"),
            ("random", "value = 9"),
            ("warp-wide", "xor = 3"),
            ("stuck-at-1", "bit = 3"),
        ] {
            assert_eq!(wrong(model, stated), None, "{model} {stated}");
        }
    }

    #[test]
    fn a_fault_that_changes_nothing_is_refused() {
        let wrong = |text: &str, count: Option<u32>| {
            toml::from_str::<ListedFault>(text).unwrap().check(count).unwrap_err()
        };
        assert!(wrong("site = \"register\"\nxor = 0", None).starts_with("xor = 0"));
        let bits = wrong("site = \"register\"\nmodel = \"bits\"", None);
        assert!(bits.starts_with("missing number of bits for the model `bits`; add bits = 3"), "{bits}");
    }
}
