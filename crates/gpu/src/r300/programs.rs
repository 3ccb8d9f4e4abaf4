//! Cached programs of earlier draws. For each program, the cache contains the decoded form, the lowered forms, and the
//! state that determined the decoded form.

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
    /// Instruction slot of the first word.
    pub(super) first: usize,
    /// State registers that affect the program.
    pub(super) registers: Arc<[u32]>,
    pub(super) options: Options,
}

/// A cached fragment program.
#[derive(Clone, Debug)]
pub(super) struct KeptFragmentProgram {
    /// Numbers of the constants that the program reads.
    pub(super) constants: Arc<[u8]>,
    /// For each channel of each temporary, whether the program may read the channel.
    pub(super) read: Arc<[bool]>,
    /// The texel that the program outputs. `None` if the program does more than output a texel.
    pub(super) texel: Option<TexelRead>,
    /// The decoded program, without constants and textures.
    pub(super) decoded: Loaded,
    /// The lowered program for each environment. The environments contain no constants, because constants do not affect
    /// lowering.
    pub(super) lowered: Kept<Arc<Environment>, Loaded>,
}
