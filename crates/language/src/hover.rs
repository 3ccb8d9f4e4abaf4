//! Explanations of positions in a source, in Markdown.

use reconverge_isa::expand::ConstantAt;
use reconverge_isa::forms::Form;
use reconverge_isa::{Isa, Span};
use reconverge_workbench::machine::{ExplainedField, Explanation};

use crate::analysis::{Analysis, InstructionAt};
use crate::lexemes::{Lexeme, LexemeKind};
use crate::names::{Definition, NameSort};
use crate::vocabulary::vocabulary;

/// Maximum number of instructions that are shown for one line.
const MOST_INSTRUCTIONS: usize = 8;

/// Maximum number of forms of a mnemonic that are shown.
const MOST_FORMS: usize = 12;

/// An explanation of a part of the source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explained {
    /// The part that is explained.
    pub span: Span,
    /// The explanation, in Markdown.
    pub markdown: String,
}

impl Analysis {
    /// Explains the name, the directive or the instruction at a byte offset.
    pub fn hover(&self, offset: usize) -> Option<Explained> {
        let offset = offset.min(self.text().len());
        let line = self.line_at(offset);
        let lexeme = line.at(offset);
        if lexeme.is_some_and(|lexeme| lexeme.kind == LexemeKind::Comment) {
            return None;
        }
        if let Some(found) = self.names.at(0, offset) {
            let definition = &self.names.definitions[found.definition];
            return Some(Explained { span: found.span, markdown: self.about_name(definition) });
        }
        if let Some(lexeme) = lexeme.filter(|lexeme| lexeme.kind == LexemeKind::Directive) {
            return self.about_directive(lexeme);
        }
        let statement = self.statement_at(offset);
        if line.code().is_empty() || offset > line.code_end {
            return None;
        }
        let number = self.lines().line(offset);
        let instructions = self.instructions_in(number);
        if instructions.is_empty() {
            return lexeme.and_then(|lexeme| self.about_mnemonic(lexeme));
        }
        let code = line.statement(self.text()).iter().rfind(|lexeme| lexeme.kind != LexemeKind::Comment);
        let span = Span::new(statement.start, code.map_or(statement.end, |last| last.span.end));
        let mut markdown = lexeme.and_then(|lexeme| self.about_operand(lexeme)).unwrap_or_default();
        markdown += &match instructions {
            [only] if only.own => self.about_instruction(*only)?,
            several => self.about_several(several),
        };
        Some(Explained { span, markdown })
    }

    /// Returns the explanation of an instruction.
    fn about_instruction(&self, instruction: InstructionAt) -> Option<String> {
        let program = self.assembled()?.image.programs.get(instruction.program)?;
        let target = self.target_of(program);
        let explained = target.machine().explain_at(&target, program, instruction.address).ok()?;
        Some(of_explanation(&explained, &self.isa().spelled(instruction.address)))
    }

    /// Returns a line about a register, a memory or a type (Tesla).
    fn about_operand(&self, lexeme: Lexeme) -> Option<String> {
        let word = lexeme.text(self.text());
        let is_memory = self.text()[lexeme.span.end..].starts_with('[');
        if self.isa() != Isa::Tesla || lexeme.kind != LexemeKind::Word {
            return None;
        }
        let name = word.trim_end_matches(|c: char| c.is_ascii_digit());
        let number = word[name.len()..].parse::<u32>().ok();
        let about = match (name, number) {
            ("$r", Some(_)) => "a general register of the lane, 32 bits",
            ("$c", Some(_)) => "a flags register of the lane",
            ("$a", Some(_)) => "an address register of the lane",
            ("g", Some(_)) if is_memory => "global memory",
            ("c", Some(_)) if is_memory => "constant memory",
            ("s", None) if is_memory => "shared memory of the block",
            ("l", None) if is_memory => "local memory of the lane",
            ("b", Some(8 | 16 | 32 | 64 | 128)) => "values of any type",
            ("u", Some(8 | 16 | 24 | 32 | 64)) => "unsigned integers",
            ("s", Some(8 | 16 | 24 | 32 | 64)) => "signed integers",
            ("f", Some(16 | 32 | 64)) => "floats",
            _ => return None,
        };
        let bits = number.filter(|_| matches!(name, "b" | "u" | "s" | "f") && !is_memory);
        let bits = bits.map(|bits| format!("{bits}-bit ")).unwrap_or_default();
        Some(format!("`{word}`: {bits}{about}\n\n"))
    }

    /// Returns a list of the instructions that a line expands to.
    fn about_several(&self, instructions: &[InstructionAt]) -> String {
        let count = instructions.len();
        let mut text = match count {
            1 => "1 instruction\n".to_owned(),
            _ => format!("{count} instructions\n"),
        };
        text += "\n```\n";
        for instruction in instructions.iter().take(MOST_INSTRUCTIONS) {
            let code = self.listing(instruction.program).map(|lines| lines.code(instruction.address));
            text +=
                &format!("{:>6}  {}\n", self.isa().spelled(instruction.address), code.unwrap_or_default());
        }
        if count > MOST_INSTRUCTIONS {
            text += "     …\n";
        }
        text + "```\n"
    }

    fn about_directive(&self, lexeme: Lexeme) -> Option<Explained> {
        let row = vocabulary(self.isa()).directive(lexeme.text(self.text()))?;
        let markdown = format!("```\n{} {}\n```\n{}\n", row.name, row.operands, sentence(row.about));
        Some(Explained { span: lexeme.span, markdown })
    }

    fn about_mnemonic(&self, lexeme: Lexeme) -> Option<Explained> {
        let forms = self.forms(lexeme.text(self.text()));
        (!forms.is_empty()).then(|| Explained { span: lexeme.span, markdown: of_forms(&forms) })
    }

    /// Returns the forms of a mnemonic for the source's chip and program type.
    pub(crate) fn forms(&self, mnemonic: &str) -> Vec<Form> {
        let target = self.target();
        match vocabulary(target.isa).mnemonics.contains(mnemonic) {
            true => target.machine().forms(&target, mnemonic),
            false => Vec::new(),
        }
    }

    fn about_name(&self, definition: &Definition) -> String {
        let Definition { sort, name, file, whole, .. } = definition;
        let text = &self.files[*file].text;
        let line = |span: Span| text.get(span.start..span.end).unwrap_or_default().trim_end();
        let place = match *file {
            0 => String::new(),
            file => format!("in {}\n", self.files[file].name),
        };
        let what = match sort {
            NameSort::Constant => match self.constant(definition) {
                Some(constant) => format!("{name} = {}", constant.value),
                None => line(*whole).to_owned(),
            },
            NameSort::Label => format!("{name}: {}", self.address_of(definition)),
            NameSort::Program => format!("program {name}"),
            _ => line(*whole).lines().take(20).collect::<Vec<_>>().join("\n"),
        };
        format!("```\n{}\n```\n{}\n{place}", what.trim_end(), sentence(sort.noun()))
    }

    /// Returns the constant that a definition introduces.
    pub(crate) fn constant(&self, definition: &Definition) -> Option<&ConstantAt> {
        let name = &self.files[definition.file].name;
        self.expanded.as_ref()?.constants().iter().find(|constant| {
            let file = constant.file.as_ref().map_or("", |file| file.name.as_str());
            file == name
                && constant.span.start <= definition.span.start
                && definition.span.end <= constant.span.end
        })
    }

    /// Returns a text with the address of the instruction after a label. If the address is unknown, the text is empty.
    fn address_of(&self, label: &Definition) -> String {
        if label.file != 0 {
            return String::new();
        }
        let from = self.instructions().partition_point(|found| found.at < label.span.start);
        let next = self.instructions().get(from);
        let inside = |found: &&InstructionAt| label.scope.is_none_or(|scope| found.at <= scope.end);
        next.filter(inside)
            .map(|found| format!("address {}", self.isa().spelled(found.address)))
            .unwrap_or_default()
    }
}

fn sentence(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().map(|first| first.to_uppercase().to_string()).unwrap_or_default();
    format!("{first}{}.", letters.as_str())
}

/// Formats the explanation of an instruction: text, address and words, meaning, fields, source.
fn of_explanation(explained: &Explanation, address: &str) -> String {
    let words: Vec<String> = explained.words.iter().map(|word| format!("{word:08x}")).collect();
    let mut text = format!("```\n{}\n```\n", explained.text);
    for line in explained.meaning.iter().chain(&explained.flow) {
        text += &format!("{}\n\n", escaped(line));
    }
    for finding in &explained.findings {
        text += &format!("**{}**\n\n", escaped(finding));
    }
    text += &format!("address {address}, words `{}`\n\n", words.join(" "));
    let fields: Vec<String> = explained.fields.iter().filter(|field| matters(field)).map(of_field).collect();
    if !fields.is_empty() {
        text += "| word | bits | field | value | meaning |\n|---|---|---|---|---|\n";
        text += &fields.concat();
    }
    text + &format!("\n{}\n", escaped(&explained.source))
}

/// Returns whether to show a field. The opcode, unused bits, fields without a text and most zeros are omitted.
fn matters(field: &ExplainedField) -> bool {
    let is_unused = matches!(field.name.as_str(), "opcode" | "spare") || field.name.starts_with("not used");
    let is_default = field.value == 0 && !field.text.starts_with(['$', 'R', '@']);
    !(is_unused || is_default || field.text.is_empty())
}

fn of_field(field: &ExplainedField) -> String {
    let ExplainedField { index, name, hi, lo, text, doc, .. } = field;
    let bits = if hi == lo { hi.to_string() } else { format!("{hi}:{lo}") };
    format!("| {index} | {bits} | {} | {} | {} |\n", escaped(name), escaped(text), escaped(doc))
}

/// Formats the forms of a mnemonic, each with an example.
pub(crate) fn of_forms(forms: &[Form]) -> String {
    let mut text = String::new();
    for form in forms.iter().take(MOST_FORMS) {
        text += &format!("```\n{}\n```\n", form.text);
        for (name, place) in &form.places {
            text += &format!("- `{name}`: `{place}`\n");
        }
        text += &format!("\nexample: `{}`  \n", form.example.replace('\n', "`, `"));
        let about = [form.about.as_str(), form.source.as_str()];
        let about: Vec<String> =
            about.iter().filter(|part| !part.is_empty()).map(|part| escaped(part)).collect();
        text += &format!("{}\n\n", about.join("; "));
    }
    if forms.len() > MOST_FORMS {
        text += &format!("and {} more forms\n", forms.len() - MOST_FORMS);
    }
    text
}

/// Returns the text with Markdown's special characters escaped.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '\\' | '`' | '*' | '_' | '[' | ']' | '<' | '>' | '|' | '#' | '~' => out.extend(['\\', character]),
            '\n' => out.push(' '),
            _ => out.push(character),
        }
    }
    out
}
