//! Faults of Mesa's driver that affect compute programs. Each fault is reported once. With `--driver-fixes`, the chip
//! compensates for the faults.
//!
//! | fault | handling with `--driver-fixes` |
//! |---|---|
//! | the driver does not submit the start-up commands of the compute object | the chip reads the commands from the push buffer and executes the commands |
//! | the driver uploads each program only once, and all programs to the same address | before a launch, the chip stores the program at the address again |
//! | kernels of OpenCL access memory through g0[], which the driver does not map | the chip maps g0[] to all of memory, like g15[] |
//! | arguments and variables begin at s\[0x0\] instead of s\[0x10\], and loads of arguments have no type | [`driver_fixes`] corrects the instructions |
//! | the driver sets the limit of an image without layers to 65,536 rows | the chip sets the limit to the number of rows of the image |
//!
//! Source: Mesa 22.3.6 and 25.0.7, `src/gallium/drivers/nouveau/nv50`. The messages below name the functions of Mesa
//! that have the faults.

use std::sync::Arc;

use reconverge_simt::vram::Vram;
use reconverge_tesla::code::Code;
use reconverge_tesla::driver_fixes::{self, DriverFixes};
use reconverge_tesla::spaces::{Segment, Segments};

/// A fault of the driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DriverFault {
    /// The driver does not submit the words that `nv50_screen_compute_setup` writes.
    StartUp,
    /// Arguments and variables begin at s\[0x0\] instead of s\[0x10\].
    Offset,
    /// Kernels access global memory through g0[], which the driver does not map.
    FirstSegment,
    /// The driver uploads the code of each compute program to offset 0. Therefore, each program overwrites the previous
    /// program.
    OnePlace,
    /// The parameters of a launch match several earlier programs. Therefore, the chip cannot determine which program
    /// the driver intends to launch.
    SeveralPrograms,
    /// Instructions that load arguments have no type and a wrong offset.
    Form,
    /// The compiler emits the number of a 32-bit register for a half register.
    Half,
    /// The compiler wrongly expects the chip to take shift counts modulo 32.
    Shift,
    /// The compiler emits saturating conversions to small integers, although the conversions should drop the upper
    /// bits.
    Saturates,
    /// The compiler emits 16-bit instructions for comparisons and shifts of 64-bit integers.
    Long,
    /// The bits of an operand in s[] do not determine the address of the operand.
    Ambiguous,
    /// The driver computes too many rows for the limit of an image without layers.
    Rows,
    /// A program accesses memory past the end of a buffer or an image.
    Beyond,
}

impl DriverFault {
    /// Returns the last part of the message, which states how the fault is handled.
    fn consequence(self, handled: bool) -> &'static str {
        match self {
            DriverFault::StartUp | DriverFault::Ambiguous | DriverFault::Beyond => "",
            DriverFault::SeveralPrograms if handled => {
                "; the chip runs the program that followed the previous program the last time, or otherwise the \
                 program that has not run for the longest time (for OpenCL: the previous program again)"
            }
            DriverFault::Long if handled => {
                "; comparisons and shifts use the lower 32 bits, so results for larger numbers are wrong"
            }
            _ if handled => "; --driver-fixes corrects this",
            _ => "; correct this with --driver-fixes nv50-compute",
        }
    }

    /// Returns the first part of the message. This part names the fault and the position of the fault in the driver.
    fn text(self) -> &'static str {
        match self {
            DriverFault::StartUp => {
                "F1: the driver does not submit the compute object's start-up (Mesa 22.3.6, nv50_screen.c: \
                 nv50_screen_init_hwctx kicks the push buffer before nv50_screen_compute_setup fills it); the chip runs with the \
                 values that the start-up would set"
            }
            DriverFault::Offset => {
                "F2: a compute program has `shared` variables or arguments at s[0x0], where the chip stores its own words \
                 (nv50_ir_from_nir.cpp: Converter::visit of load_shared, store_shared and load_kernel_input does not add \
                 inputOffset)"
            }
            DriverFault::Form => {
                "F5: a kernel loads an argument without its type and with a divided offset (nv50_ir_emit_nv50.cpp: \
                 CodeEmitterNV50::emitLOAD of FILE_SHADER_INPUT)"
            }
            DriverFault::Half => {
                "F6: a kernel has the number of a 32-bit register where the chip expects the number of a half \
                 register (nv50_ir_from_nir.cpp: Converter::convert allocates 4 bytes for values of 8 and 16 bits, \
                 but nv50_ir_emit_nv50.cpp writes halves)"
            }
            DriverFault::Shift => {
                "F9: a compute program shifts by a register; NIR takes the count modulo 32, but the chip does not \
                 (nv50_ir_emit_nv50.cpp: CodeEmitterNV50::emitShift ignores NV50_IR_SUBOP_SHIFT_WRAP)"
            }
            DriverFault::Saturates => {
                "F10: a kernel converts to 8 or 16 bits; the chip saturates, but OpenCL C drops the upper bits (nv50_ir_from_nir.cpp: \
                 Converter::visit of nir_op_u2u8 and others emits OP_CVT)"
            }
            DriverFault::Long => {
                "F17: a kernel compares or shifts integers of 64 bits, but the compiler emits instructions of 16 bits \
                 (nv50_ir_emit_nv50.cpp: CodeEmitterNV50::emitSET and emitShift have no case for 8 bytes)"
            }
            DriverFault::Ambiguous => {
                "F7: in a compute program, the bits of an operand in s[] may mean several arguments or variables \
                 (nv50_ir_target_nv50.cpp: TargetNV50::insnCanLoad allows more bits than the form has): results may be wrong"
            }
            DriverFault::Rows => {
                "F11: the limit of an image without layers has 65536 rows (nv50_compute.c: nv50_compute_validate_surfaces divides \
                 max_size, which is 0), so that rows outside of the image read other memory"
            }
            DriverFault::Beyond => {
                "a compute program accesses memory outside of a buffer or an image; the emulated chip reads zeros and \
                 stores nothing, as OpenGL requires, but a real chip may trap (nv50_compute.c: \
                 nv50_compute_validate_surfaces relies on LIMIT)"
            }
            DriverFault::FirstSegment => {
                "F3: a kernel with arguments uses g0[], which the driver does not map (nv50_compute.c: \
                 nv50_compute_validate_globals maps g15[] only)"
            }
            DriverFault::SeveralPrograms => {
                "F4: the driver launches an earlier compute program without uploading it again, and several programs match (nv50_program.c: \
                 nv50_program_upload_code)"
            }
            DriverFault::OnePlace => {
                "F4: the driver launches a compute program whose code another program has overwritten (nv50_program.c: \
                 nv50_program_upload_code leaves code_base at 0 and does not upload again)"
            }
        }
    }
}

/// Properties of a launch that identify the launch's program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Signature {
    /// Size of the parameters in bytes, including the word that the driver adds.
    pub(super) parameters: usize,
    /// Size of a block in threads. All launches of an OpenGL program have the same block size.
    pub(super) block: [u32; 3],
    pub(super) registers: u32,
    pub(super) shared_bytes: u32,
    /// Bit set of the segments of g[] that are mapped.
    pub(super) segments: u16,
}

impl Signature {
    /// Returns whether the program is an OpenCL kernel. Programs of OpenGL do not have arguments.
    fn is_kernel(&self) -> bool {
        self.parameters > 4
    }

    /// Returns whether both signatures may belong to the same program.
    fn fits(&self, other: &Signature) -> bool {
        let same = (self.parameters, self.registers, self.shared_bytes)
            == (other.parameters, other.registers, other.shared_bytes);
        same && (self.is_kernel() || (self.block, self.segments) == (other.block, other.segments))
    }
}

/// A program that has been launched.
#[derive(Debug)]
struct Uploaded {
    words: Arc<[u32]>,
    signature: Signature,
    /// Number of the program's last launch.
    launched: u64,
    /// Index of the program that was launched after this program.
    next: Option<usize>,
}

/// Detects the faults of a chip's driver, and handles the faults if `handled` is set.
#[derive(Debug, Default)]
pub(super) struct Faults {
    /// Whether the faults are handled, not only reported.
    pub(super) handled: bool,
    /// End address of the submitted start-up commands of the 3D object. The driver writes the start-up commands of the
    /// compute object at this address. In some cases, the driver does not submit the commands of the compute object.
    /// The value is `None` after the chip has executed the compute object's start-up commands.
    pub(super) unsent: Option<usize>,
    /// Whether the driver has announced a program since the last launch.
    pub(super) flushed: bool,
    named: Vec<DriverFault>,
    remarks: Vec<String>,
    programs: Vec<Uploaded>,
    /// Index of the program that was launched last.
    last: usize,
    launches: u64,
}

/// Maximum number of programs that are remembered.
const MOST_PROGRAMS: usize = 256;

impl Faults {
    /// Reports a fault. Does nothing if this fault was already reported.
    pub(super) fn name(&mut self, fault: DriverFault) {
        if !self.named.contains(&fault) {
            self.named.push(fault);
            self.remarks.push(format!("{}{}", fault.text(), fault.consequence(self.handled)));
        }
    }

    /// Returns the messages since the last call of this function.
    pub(super) fn take_remarks(&mut self) -> Vec<String> {
        std::mem::take(&mut self.remarks)
    }

    /// Checks whether the driver intends to launch a different program than the program at `place`. The intended
    /// program is different if the driver has announced a program, but has not uploaded the announced program. If
    /// `handled` is set, stores the intended program at `place`. The driver's OpenGL part announces a program only if
    /// the program changes. The driver's OpenCL part announces a program before each launch.
    pub(super) fn before_launch(&mut self, memory: Vram<'_>, place: usize, signature: &Signature) {
        let Some(last) = self.programs.get(self.last).filter(|_| self.flushed) else { return };
        // If the code at `place` has changed since the last launch, the driver has uploaded the intended program.
        if !memory.holds_words(place, &last.words) {
            return;
        }
        if signature.is_kernel() && last.signature.fits(signature) {
            let others = self.programs.iter().filter(|program| program.signature.fits(signature)).count() > 1;
            if others {
                self.name(DriverFault::SeveralPrograms);
            }
            return;
        }
        let fits = |number: &usize| *number != self.last && self.programs[*number].signature.fits(signature);
        let meant: Vec<usize> = (0..self.programs.len()).filter(fits).collect();
        // After an earlier launch of the last program, the driver may have launched a second program. In this case, the
        // code assumes that the driver intends to launch the second program again. Otherwise, this code chooses the
        // program that was not launched for the longest time.
        let followed = meant.iter().find(|number| last.next == Some(**number));
        let oldest = meant.iter().min_by_key(|number| self.programs[**number].launched);
        let Some(&number) = followed.or(oldest) else { return };
        self.name(if meant.len() > 1 { DriverFault::SeveralPrograms } else { DriverFault::OnePlace });
        if self.handled {
            let words = self.programs[number].words.iter();
            memory.write(place, &words.flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>());
        }
    }

    /// Records the program of a launch.
    pub(super) fn launched(&mut self, words: &Arc<[u32]>, signature: Signature) {
        self.flushed = false;
        self.launches += 1;
        let launched = self.launches;
        let number = self.programs.iter().position(|program| program.words == *words).unwrap_or_else(|| {
            if self.programs.len() == MOST_PROGRAMS {
                self.programs.clear();
                self.last = 0;
            }
            self.programs.push(Uploaded { words: words.clone(), signature, launched, next: None });
            self.programs.len() - 1
        });
        self.programs[number].launched = launched;
        if number != self.last {
            self.programs[self.last].next = Some(number);
            self.last = number;
        }
    }

    /// Reports the faults of a program.
    pub(super) fn look_at(&mut self, code: &Code, fixes: DriverFixes) {
        if [
            DriverFault::Offset,
            DriverFault::Form,
            DriverFault::Half,
            DriverFault::Shift,
            DriverFault::Saturates,
            DriverFault::Long,
            DriverFault::Ambiguous,
        ]
        .iter()
        .all(|fault| self.named.contains(fault))
        {
            return;
        }
        for (fault, _) in driver_fixes::faults(code, fixes) {
            self.name(match fault {
                driver_fixes::ProgramFault::Offset => DriverFault::Offset,
                driver_fixes::ProgramFault::Form => DriverFault::Form,
                driver_fixes::ProgramFault::Half => DriverFault::Half,
                driver_fixes::ProgramFault::Saturates => DriverFault::Saturates,
                driver_fixes::ProgramFault::Long => DriverFault::Long,
                driver_fixes::ProgramFault::Shift => DriverFault::Shift,
                driver_fixes::ProgramFault::Ambiguous => DriverFault::Ambiguous,
            });
        }
    }

    /// Corrects the limit of images without layers. The driver wrongly computes a limit of 65,536 rows for these images
    /// (F11).
    pub(super) fn limit_rows(&mut self, segments: &mut Segments, reached: u16, rows: impl Fn(usize) -> u32) {
        for (number, segment) in segments.0.iter_mut().enumerate().filter(|(n, _)| reached >> n & 1 != 0) {
            let Some(segment) = segment.as_mut().filter(|segment| segment.tiling.is_some()) else { continue };
            let known = rows(number);
            if segment.limit >> 16 == 0xffff && (1..0xffff).contains(&known) {
                self.name(DriverFault::Rows);
                if self.handled {
                    segment.limit = (known - 1) << 16 | segment.limit & 0xffff;
                }
            }
        }
    }

    /// Maps g0[] if a kernel with arguments accesses g0[].
    pub(super) fn map_first_segment(&mut self, segments: &mut Segments, reached: u16, arguments: usize) {
        // The first argument word belongs to the driver. Therefore, a kernel with arguments has more than four bytes of
        // argument words.
        if reached & 1 == 0 || segments.0[0].is_some() || arguments <= 4 {
            return;
        }
        self.name(DriverFault::FirstSegment);
        if self.handled {
            segments.0[0] = Some(Segment::ALL);
        }
    }
}
