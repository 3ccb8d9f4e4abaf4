//! Which of a machine's engines runs. Results never depend on it.

use std::fmt;

/// An engine of a machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Engine {
    /// The clear interpreter, written to be read beside the manual.
    #[default]
    Reference,
    /// Lowered once, whole rows at a time.
    Fast,
    /// Both, compared after every instruction.
    Lockstep,
}

impl Engine {
    /// All of them.
    pub const ALL: [Engine; 3] = [Engine::Reference, Engine::Fast, Engine::Lockstep];

    /// The name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Engine::Reference => "reference",
            Engine::Fast => "fast",
            Engine::Lockstep => "lockstep",
        }
    }

    /// The engine of a name.
    pub fn from_name(name: &str) -> Option<Engine> {
        Engine::ALL.into_iter().find(|engine| engine.name() == name)
    }
}

impl fmt::Display for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The same thing as each engine has it, where [`Engine::Lockstep`] finds that they differ.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Views<T> {
    /// The reference interpreter's.
    pub reference: T,
    /// The fast engine's.
    pub fast: T,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_engine_is_found_by_its_name() {
        for engine in Engine::ALL {
            assert_eq!(Engine::from_name(engine.name()), Some(engine));
        }
        assert_eq!(Engine::from_name("slow"), None);
    }
}
