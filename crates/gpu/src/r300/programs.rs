//! What programs of earlier draws were decoded from, and what was made of them.

use std::sync::Arc;

use reconverge_r500::launch::Environment;
use reconverge_r500::run::Loaded;
use reconverge_simt::Options;

use crate::kept::Kept;

/// What decoding a program depends on.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct DecodedFrom {
    pub(super) words: Arc<[u32]>,
    /// The slot of the first word.
    pub(super) first: usize,
    /// State registers that are part of a program.
    pub(super) registers: Arc<[u32]>,
    pub(super) options: Options,
}

/// A fragment program.
#[derive(Clone, Debug)]
pub(super) struct KeptFragmentProgram {
    /// The constants that it reads.
    pub(super) constants: Vec<u8>,
    /// Without constants and textures.
    pub(super) decoded: Loaded,
    /// Lowered for textures, without constants.
    pub(super) lowered: Kept<Arc<Environment>, Loaded>,
}
