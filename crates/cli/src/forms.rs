//! `reconverge forms`

use anyhow::{Result, bail};
use reconverge_isa::source::{closest, suggest};
use reconverge_workbench::target::{TargetError, isa_of_chip};
use serde::Serialize;

use crate::args::{Answer, TargetArgs};
use crate::messages::answer_as;

/// Show the legal forms of a mnemonic
///
/// Each form has an example that assembles. In a form, a|b means either of them, [a] is optional, capital letters are
/// numbers, and <a> is explained after the example. Without a mnemonic, the command lists all mnemonics of the
/// machine.
#[derive(clap::Args)]
pub(crate) struct Forms {
    /// The mnemonic, such as add (tesla), MUL or SAMPLE (r700), MAD or loop (r500)
    mnemonic: Option<String>,
    /// One JSON object on standard output
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    target: TargetArgs,
}

/// The JSON output.
#[derive(Serialize)]
struct Found {
    isa: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    mnemonic: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    forms: Vec<Shown>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    mnemonics: Vec<&'static str>,
}

#[derive(Serialize)]
struct Shown {
    form: String,
    example: String,
    places: Vec<Place>,
    about: String,
    source: String,
}

/// A name in a form and its meaning.
#[derive(Serialize)]
struct Place {
    name: String,
    text: String,
}

pub(crate) fn run(args: &Forms) -> Result<Answer> {
    let isa = args.target.isa.or_else(|| args.target.chip.as_deref().and_then(isa_of_chip));
    let isa = isa.ok_or(TargetError::Unknown("--isa or --chip"))?;
    let target = args.target.target(isa)?;
    let machine = target.machine();
    let Some(mnemonic) = args.mnemonic.clone() else {
        let found =
            Found { isa: isa.name(), mnemonic: None, forms: Vec::new(), mnemonics: machine.mnemonics() };
        answer_as(args.json, &found, |found| found.mnemonics.iter().for_each(|name| say!("{name}")));
        return Ok(Answer::Yes);
    };
    let forms = machine.forms(&target, &mnemonic);
    if forms.is_empty() {
        let all = machine.mnemonics();
        let names = || all.iter().copied();
        let on = target.chip_name().map(|chip| format!(" on {chip}")).unwrap_or_default();
        if names().any(|name| name == mnemonic) {
            bail!("no form of `{mnemonic}` for {isa}{on} in programs of this type");
        }
        match closest(&mnemonic, names()) {
            Some(_) => bail!("unknown mnemonic `{mnemonic}` for {isa}: {}", suggest(&mnemonic, names())),
            None => bail!("unknown mnemonic `{mnemonic}` for {isa}; omit it to list all mnemonics"),
        }
    }
    let forms = forms.into_iter().map(|form| Shown {
        form: form.text,
        example: form.example,
        places: form.places.into_iter().map(|(name, text)| Place { name, text }).collect(),
        about: form.about,
        source: form.source,
    });
    let found =
        Found { isa: isa.name(), mnemonic: Some(mnemonic), forms: forms.collect(), mnemonics: Vec::new() };
    answer_as(args.json, &found, print);
    Ok(Answer::Yes)
}

fn print(found: &Found) {
    for (number, form) in found.forms.iter().enumerate() {
        if number > 0 {
            say!("");
        }
        say!("{}", form.form);
        say!("    {}", form.example.replace('\n', "\n    "));
        form.places.iter().for_each(|place| say!("    {} is {}", place.name, place.text));
        let about = [form.about.as_str(), form.source.as_str()].into_iter().filter(|part| !part.is_empty());
        say!("    ; {}", about.collect::<Vec<_>>().join("; "));
    }
}
