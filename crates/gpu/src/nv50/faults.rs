//! Faults of Mesa's driver that show when compute programs run. Each is named once. If that is asked for, they are handled, as a
//! driver without them would do.
//!
//! | fault | handled |
//! |---|---|
//! | the start-up of the compute object is not submitted | it is executed from the push buffer in which it lies |
//! | all programs are uploaded to one place, and only once | the words of a program that returns are stored there again |
//! | kernels of OpenCL address memory through g0[], which is not mapped | g0[] is all of the memory, as g15[] is |
//!
//! Source: Mesa 22.3.6 and 25.0.7, `src/gallium/drivers/nouveau/nv50`; the functions are named below.

use std::sync::Arc;

use reconverge_simt::vram::Vram;
use reconverge_tesla::code::Code;
use reconverge_tesla::driver_fixes::{self, DriverFixes};
use reconverge_tesla::spaces::{Segment, Segments};

/// A fault of the driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// The words that `nv50_screen_compute_setup` writes stay in the push buffer.
    StartUp,
    /// Arguments and variables are addressed from s[0x0] on.
    Offset,
    /// Global memory of kernels is g0[].
    FirstSegment,
    /// Code of compute programs is at offset 0, whichever program it is.
    OnePlace,
    /// Loads of arguments have no type.
    Form,
    /// Registers of small values have numbers of 32-bit registers.
    Half,
    /// Counts of shifts are meant modulo 32.
    Shift,
    /// Conversions saturate.
    Saturates,
    /// What an operand in s[] means cannot be told.
    Ambiguous,
}

impl Fault {
    /// What is wrong, and where.
    fn text(self) -> &'static str {
        match self {
            Fault::StartUp => {
                "F1: the driver does not submit the compute object's start-up (Mesa 22.3.6, nv50_screen.c: \
                 nv50_screen_init_hwctx kicks the push buffer before nv50_screen_compute_setup fills it); the chip runs with the \
                 values that it would set"
            }
            Fault::Offset => {
                "F2: a compute program addresses `shared` variables or arguments from s[0x0] on, where the chip's own words are \
                 (nv50_ir_from_nir.cpp: Converter::visit of load_shared, store_shared and load_kernel_input does not add \
                 inputOffset); --driver-fixes nv50-compute moves them"
            }
            Fault::Form => {
                "F5: a kernel loads an argument without its type and with a divided offset (nv50_ir_emit_nv50.cpp: \
                 CodeEmitterNV50::emitLOAD of FILE_SHADER_INPUT); --driver-fixes nv50-compute loads what is meant"
            }
            Fault::Half => {
                "F6: a kernel has the number of a 32-bit register where a half register's is expected (nv50_ir_from_nir.cpp: \
                 Converter::convert gives values of 8 and 16 bits 4 bytes, nv50_ir_emit_nv50.cpp writes halves); --driver-fixes \
                 nv50-compute reads and writes what is meant"
            }
            Fault::Shift => {
                "F9: a compute program shifts by a register, which the chip does not take modulo 32 as NIR does \
                 (nv50_ir_emit_nv50.cpp: CodeEmitterNV50::emitShift ignores NV50_IR_SUBOP_SHIFT_WRAP); --driver-fixes \
                 nv50-compute does"
            }
            Fault::Saturates => {
                "F10: a kernel converts to 8 or 16 bits, for which the chip saturates and OpenCL C drops bits (nv50_ir_from_nir.cpp: \
                 Converter::visit of nir_op_u2u8 and others emits OP_CVT); --driver-fixes nv50-compute drops them"
            }
            Fault::Ambiguous => {
                "F7: in a compute program, the bits of an operand in s[] may mean several arguments or variables \
                 (nv50_ir_target_nv50.cpp: TargetNV50::insnCanLoad allows more bits than the form has): results may be wrong"
            }
            Fault::FirstSegment => {
                "F3: a kernel with arguments uses g0[], which the driver does not map (nv50_compute.c: \
                 nv50_compute_validate_globals maps g15[] only); --driver-fixes nv50-compute maps it"
            }
            Fault::OnePlace => {
                "F4: the driver launches a compute program whose code another one has overwritten (nv50_program.c: \
                 nv50_program_upload_code leaves code_base at 0 and does not upload again); --driver-fixes nv50-compute \
                 uploads it"
            }
        }
    }
}

/// What a launch tells of the program that the driver means: threads of a block, and bytes of arguments.
type Signature = ([u32; 3], usize);

/// A program that was uploaded and launched.
#[derive(Debug)]
struct Uploaded {
    words: Arc<[u32]>,
    signature: Signature,
}

/// The faults of the driver of a chip.
#[derive(Debug, Default)]
pub(super) struct Faults {
    /// Whether they are handled.
    pub(super) handled: bool,
    /// Where the words lie behind the start-up of the 3D object, until the words of the compute object have been found there.
    pub(super) unsent: Option<usize>,
    /// Whether the driver has said since the last launch that the program is another one.
    pub(super) flushed: bool,
    named: Vec<Fault>,
    remarks: Vec<String>,
    programs: Vec<Uploaded>,
    /// The number of the program that was launched last.
    last: usize,
}

/// Programs whose words are kept.
const MOST_PROGRAMS: usize = 256;

impl Faults {
    /// Names a fault, the first time.
    pub(super) fn name(&mut self, fault: Fault) {
        if !self.named.contains(&fault) {
            self.named.push(fault);
            self.remarks.push(fault.text().to_owned());
        }
    }

    /// What has been named since the last call.
    pub(super) fn take_remarks(&mut self) -> Vec<String> {
        std::mem::take(&mut self.remarks)
    }

    /// Finds out whether the driver means another program than the one at `place`.
    pub(super) fn before_launch(&mut self, memory: Vram<'_>, place: usize, signature: Signature) {
        let Some(last) = self.programs.get(self.last).filter(|_| self.flushed) else { return };
        // Code that was uploaded since is that of the program.
        if !memory.holds_words(place, &last.words) {
            return;
        }
        let fits = |number: &usize| self.programs[*number].signature == signature;
        let others = (0..self.programs.len()).filter(|number| *number != self.last);
        let meant: Vec<usize> = others.filter(fits).collect();
        // A launch of the same program again begins with the same words, too.
        let again = last.signature == signature;
        let Some(&number) = meant.first() else { return };
        if again {
            return;
        }
        self.name(Fault::OnePlace);
        if self.handled {
            let bytes: Vec<u8> =
                self.programs[number].words.iter().flat_map(|word| word.to_le_bytes()).collect();
            memory.write(place, &bytes);
        }
    }

    /// Takes the program of a launch.
    pub(super) fn launched(&mut self, words: &Arc<[u32]>, signature: Signature) {
        self.flushed = false;
        match self.programs.iter().position(|program| program.words == *words) {
            Some(number) => self.last = number,
            None => {
                if self.programs.len() == MOST_PROGRAMS {
                    self.programs.remove(0);
                }
                self.programs.push(Uploaded { words: words.clone(), signature });
                self.last = self.programs.len() - 1;
            }
        }
    }

    /// Names the faults of a program.
    pub(super) fn look_at(&mut self, code: &Code, fixes: DriverFixes) {
        if [Fault::Offset, Fault::Form, Fault::Half, Fault::Shift, Fault::Saturates, Fault::Ambiguous]
            .iter()
            .all(|fault| self.named.contains(fault))
        {
            return;
        }
        for (fault, _) in driver_fixes::faults(code, fixes) {
            self.name(match fault {
                driver_fixes::Fault::Offset => Fault::Offset,
                driver_fixes::Fault::Form => Fault::Form,
                driver_fixes::Fault::Half => Fault::Half,
                driver_fixes::Fault::Saturates => Fault::Saturates,
                driver_fixes::Fault::Shift => Fault::Shift,
                driver_fixes::Fault::Ambiguous => Fault::Ambiguous,
            });
        }
    }

    /// Maps g0[] of a kernel with arguments that reaches it.
    pub(super) fn map_first_segment(&mut self, segments: &mut Segments, reached: u16, arguments: usize) {
        // The first word is the driver's own.
        if reached & 1 == 0 || segments.0[0].is_some() || arguments <= 4 {
            return;
        }
        self.name(Fault::FirstSegment);
        if self.handled {
            segments.0[0] = Some(Segment::ALL);
        }
    }
}
