//! `--limits`: limits on the resources that input can request.

use reconverge_isa::limits::{ALL, Limit};

/// A limit and its value.
#[derive(Clone, Debug)]
pub(crate) struct Setting {
    limit: &'static Limit,
    value: u64,
}

impl Setting {
    /// Sets the limit for the process.
    pub(crate) fn set(&self) {
        // Setting the limit cannot fail, because `parse` has checked the value.
        let _ = self.limit.set(self.value);
    }
}

/// Returns the limits that `--limits` sets. The result does not contain limits that have a separate option.
fn settable() -> impl Iterator<Item = &'static Limit> {
    ALL.into_iter().filter(|limit| limit.raise.starts_with("--limits"))
}

/// Parses `lanes=64M`.
pub(crate) fn parse(text: &str) -> Result<Setting, String> {
    let names = || settable().map(|limit| limit.name).collect::<Vec<_>>().join(", ");
    let form = || format!("expected NAME=N, for instance lanes=64M; NAME is one of {}", names());
    let (name, number) = text.split_once('=').ok_or_else(form)?;
    let limit = Limit::from_name(name).ok_or_else(form)?;
    if !settable().any(|known| known.name == name) {
        return Err(format!("set this limit with {}", limit.raise.trim_end_matches(',')));
    }
    let (digits, shift) = match number.char_indices().next_back() {
        Some((at, 'K')) => (&number[..at], 10),
        Some((at, 'M')) => (&number[..at], 20),
        Some((at, 'G')) => (&number[..at], 30),
        _ => (number, 0),
    };
    let value = digits.parse::<u64>().ok().and_then(|value| value.checked_mul(1 << shift));
    let value = value.filter(|value| (1..=limit.most).contains(value));
    value.map(|value| Setting { limit, value }).ok_or_else(|| format!("{name}: expected 1 to {}", limit.most))
}
