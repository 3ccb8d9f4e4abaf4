//! What a machine's documents demand of a program: [`Rule`]s, and the places where one is broken.

crate::choices! {
    /// Severity of breaking a rule.
    ///
    /// Exhaustive: callers that count findings or colour them must handle every severity.
    #[derive(PartialOrd, Ord, Hash)]
    pub enum Severity {
        /// Allowed, and probably not meant.
        Note = "note",
        /// The behaviour is undefined, or depends on facts that the program cannot know.
        Warning = "warning",
        /// The documents forbid it, or the machine traps.
        Error = "error",
    }
}

/// A rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rule {
    /// Its name.
    pub name: &'static str,
    /// How bad it is to break it.
    pub severity: Severity,
    /// What it demands.
    pub demands: &'static str,
    /// The document and page, or who is known to follow it.
    pub source: &'static str,
    /// How a program that breaks it is mended.
    pub fix: &'static str,
}

/// A place where a rule is broken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The rule.
    pub rule: &'static Rule,
    /// Address of the instruction, in the machine's own unit.
    pub pc: u32,
    /// What breaks it.
    pub message: String,
}

impl Finding {
    /// Sorts findings by address; those of one address stay in their order.
    pub fn sort(findings: &mut [Finding]) {
        findings.sort_by_key(|finding| finding.pc);
    }
}

/// Words that are no instruction where one is expected.
pub const MALFORMED: Rule = Rule {
    name: "malformed",
    severity: Severity::Error,
    demands: "Words that can be reached are instructions of the chip.",
    source: "the encoding tables",
    fix: "correct the word, or read the program as the chip and program type that it was made for",
};

/// The rules of a machine, a constant each, and `RULES`, all of them: name, severity, what it demands, source, fix.
#[macro_export]
macro_rules! rules {
    ($($Name:ident = $name:literal, $severity:ident, $demands:literal, $source:literal, $fix:literal;)*) => {
        $(
            #[doc = $demands]
            pub const $Name: $crate::lint::Rule = $crate::lint::Rule {
                name: $name,
                severity: $crate::lint::Severity::$severity,
                demands: $demands,
                source: $source,
                fix: $fix,
            };
        )*
        /// Every rule of the machine's own; malformed words have one of their own.
        pub const RULES: &[$crate::lint::Rule] = &[$($Name),*];
    };
}
