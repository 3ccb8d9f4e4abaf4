//! Programs of earlier draws: the state that they were decoded from, and their decoded and lowered forms.

use std::sync::Arc;

use reconverge_r500::launch::Environment;
use reconverge_r500::run::Loaded;
use reconverge_simt::Options;

use super::copied::TexelRead;
use crate::kept::Kept;

/// The state on which decoding a program depends.
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
    pub(super) constants: Arc<[u8]>,
    /// Whether the program may read each channel of a temporary.
    pub(super) read: Arc<[bool]>,
    /// The texel that the program outputs, if that is all that it does.
    pub(super) texel: Option<TexelRead>,
    /// The program, decoded without constants and textures.
    pub(super) decoded: Loaded,
    /// The program lowered for textures, without constants.
    pub(super) lowered: Kept<Arc<Environment>, Loaded>,
}
