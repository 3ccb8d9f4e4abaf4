//! Parameters of kernels: where each one is, and their bytes for a launch.

use std::ffi::c_void;

use reconverge_isa::Program;
use reconverge_tesla::code::Code;
use reconverge_tesla::inst::{Base, Chip, Mem, Memory, Op, Operand, Space, Stage};
use reconverge_tesla::launch::PARAMETERS;
use reconverge_workbench::tesla::names::params_of_mangled;

use crate::image::readable;
use crate::status::CudaError;

/// Bytes of all parameters of a kernel, at most. (CUDA C Programming Guide 4.2, B.1.4)
pub(crate) const MOST: usize = 256;

/// A parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Parameter {
    pub(crate) offset: u32,
    pub(crate) bytes: u32,
}

/// The parameters of a kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ParameterLayout {
    /// The cubin lists them, or the types in the kernel's name place them.
    Known(Vec<Parameter>),
    /// Only the code shows them. The second word of each pair is a parameter of its own if the kernel reads it. A pointer
    /// of eight bytes, whose second word no chip of this generation reads, is one parameter, and so is a word before padding.
    Read(Vec<Parameter>),
}

impl ParameterLayout {
    /// Returns the layout of a kernel. `pointer_bytes` is the size of a pointer, if the cubin states it.
    pub(crate) fn of(program: &Program, pointer_bytes: Option<u32>) -> ParameterLayout {
        if !program.params.is_empty() {
            let listed = program.params.iter();
            return ParameterLayout::Known(
                listed.map(|param| Parameter { offset: param.offset, bytes: param.bytes }).collect(),
            );
        }
        // A cubin that does not state the shared memory gives no bound.
        let shared = program.resources.shared_bytes.unwrap_or(PARAMETERS + MOST as u32);
        let bytes = program.resources.param_bytes.unwrap_or_else(|| shared.saturating_sub(PARAMETERS));
        let bytes = bytes.min(MOST as u32);
        if bytes == 0 {
            return ParameterLayout::Known(Vec::new());
        }
        let widths: &[usize] = match pointer_bytes {
            Some(4) => &[4],
            Some(8) => &[8],
            _ => &[4, 8],
        };
        let placed: Vec<_> = widths.iter().filter_map(|width| by_name(program, *width)).collect();
        let end = |list: &Vec<Parameter>| list.last().map_or(0, |last| last.offset + last.bytes);
        // The width that fills the parameters exactly. Shared variables may follow them.
        let exact = placed.iter().find(|list| end(list) == bytes);
        match exact.or_else(|| placed.iter().find(|list| end(list) <= bytes)) {
            Some(list) => ParameterLayout::Known(list.clone()),
            None => ParameterLayout::Read(of_words(&words_read(program, bytes), pointer_bytes)),
        }
    }

    /// Bytes of the parameters.
    pub(crate) fn bytes(&self) -> usize {
        match self {
            ParameterLayout::Known(list) | ParameterLayout::Read(list) => {
                list.iter().map(|one| one.offset as usize + one.bytes as usize).max().unwrap_or(0)
            }
        }
    }

    /// Number of parameters, if it is known.
    pub(crate) fn list(&self) -> Option<&[Parameter]> {
        match self {
            ParameterLayout::Known(list) => Some(list),
            ParameterLayout::Read(_) => None,
        }
    }

    /// The bytes of a launch: `parameters` has the address of each parameter, or `extra` those of all.
    ///
    /// # Safety
    /// Both are null or what `cuLaunchKernel` documents.
    pub(crate) unsafe fn collect(
        &self,
        parameters: *const *const c_void,
        extra: *const *const c_void,
    ) -> Result<Vec<u8>, CudaError> {
        match (parameters.is_null(), extra.is_null()) {
            (false, false) => Err(CudaError::INVALID_VALUE),
            // SAFETY: as above.
            (true, false) => unsafe { of_extra(extra) },
            (true, true) => match self {
                ParameterLayout::Known(list) if !list.is_empty() => Err(CudaError::INVALID_VALUE),
                _ => Ok(Vec::new()),
            },
            // SAFETY: as above.
            (false, true) => unsafe { self.of_addresses(parameters) },
        }
    }

    unsafe fn of_addresses(&self, parameters: *const *const c_void) -> Result<Vec<u8>, CudaError> {
        // A cubin may list any sizes.
        if self.bytes() > MOST {
            return Err(CudaError::LAUNCH_OUT_OF_RESOURCES);
        }
        let mut area = vec![0; self.bytes()];
        match self {
            ParameterLayout::Known(list) => {
                for (index, Parameter { offset, bytes }) in list.iter().enumerate() {
                    // SAFETY: the list has an address for each parameter.
                    let at = unsafe { *parameters.add(index) };
                    if at.is_null() {
                        return Err(CudaError::INVALID_VALUE);
                    }
                    let to = &mut area[*offset as usize..][..*bytes as usize];
                    // SAFETY: there is a parameter of this size.
                    unsafe { to.as_mut_ptr().copy_from_nonoverlapping(at.cast(), to.len()) };
                }
            }
            // The list ends early if the kernel also reads variables after its parameters. A parameter of eight bytes may be a
            // word.
            ParameterLayout::Read(list) => {
                for (index, Parameter { offset, bytes }) in list.iter().enumerate() {
                    let mut entry = [0; size_of::<usize>()];
                    let found = readable(parameters.wrapping_add(index) as usize, &mut entry);
                    let at = usize::from_ne_bytes(entry);
                    let to = &mut area[*offset as usize..][..*bytes as usize];
                    if found < entry.len() || at == 0 || readable(at, to) < 4 {
                        break;
                    }
                }
            }
        }
        Ok(area)
    }
}

/// Returns for each word of the parameters whether the kernel reads it. Words from the first on that it writes are variables.
fn words_read(program: &Program, bytes: u32) -> Vec<bool> {
    let mut read = vec![false; bytes as usize / 4];
    let mut end = read.len();
    let code = Code::reachable(&program.words, program.base, Stage::Compute, Chip::G200);
    for inst in code.slots().flatten() {
        let is_store = matches!(inst.op, Op::Memory(Memory::St | Memory::StUnlock));
        for (place, operand) in inst.src.iter().enumerate() {
            let Operand::Mem(Mem { space: Space::Shared, base: Base::A(0), offset, access, .. }) = operand
            else {
                continue;
            };
            let Some(first) = u32::try_from(*offset).ok().and_then(|offset| offset.checked_sub(PARAMETERS))
            else {
                continue;
            };
            let words = first as usize / 4..(first + access.bytes()).div_ceil(4) as usize;
            if is_store && place == 0 {
                end = end.min(words.start);
            } else if let Some(words) = read.get_mut(words) {
                words.fill(true);
            }
        }
    }
    read.truncate(end);
    while read.last() == Some(&false) && !pairs_end(&read) {
        read.pop();
    }
    read
}

/// Whether the last word may be the second of a pointer.
fn pairs_end(read: &[bool]) -> bool {
    matches!(read, [.., true, false]) && read.len().is_multiple_of(2)
}

/// The parameters by the words that the kernel reads.
fn of_words(read: &[bool], pointer_bytes: Option<u32>) -> Vec<Parameter> {
    let mut list = Vec::new();
    for (pair, words) in read.chunks(2).enumerate() {
        let offset = 8 * pair as u32;
        match words {
            [_, false] if pointer_bytes != Some(4) => list.push(Parameter { offset, bytes: 8 }),
            _ => list.extend(
                (0..words.len() as u32).map(|word| Parameter { offset: offset + 4 * word, bytes: 4 }),
            ),
        }
    }
    list
}

/// The parameters by the types in a mangled name.
fn by_name(program: &Program, pointer_bytes: usize) -> Option<Vec<Parameter>> {
    let types = params_of_mangled(program.name.as_deref()?)?;
    let mut end = 0;
    let place = |kind: &reconverge_workbench::tesla::names::ParamType| {
        let (bytes, align) = (kind.bytes(pointer_bytes)?, kind.align(pointer_bytes)?);
        let offset = usize::next_multiple_of(end, align);
        end = offset + bytes;
        Some(Parameter { offset: offset as u32, bytes: bytes as u32 })
    };
    types.iter().map(place).collect()
}

/// The bytes that `CU_LAUNCH_PARAM_BUFFER_POINTER` and `CU_LAUNCH_PARAM_BUFFER_SIZE` give.
unsafe fn of_extra(extra: *const *const c_void) -> Result<Vec<u8>, CudaError> {
    const END: usize = 0;
    const POINTER: usize = 1;
    const SIZE: usize = 2;
    let (mut pointer, mut size) = (std::ptr::null(), 0);
    let mut at = 0;
    loop {
        // SAFETY: the list has pairs of a name and a value, and ends with END.
        let name = unsafe { *extra.add(at) } as usize;
        if name == END {
            break;
        }
        // SAFETY: as above.
        let value = unsafe { *extra.add(at + 1) };
        match name {
            POINTER => pointer = value,
            SIZE if value.is_null() => return Err(CudaError::INVALID_VALUE),
            // SAFETY: the value is the address of the size.
            SIZE => size = unsafe { value.cast::<usize>().read_unaligned() },
            _ => return Err(CudaError::INVALID_VALUE),
        }
        at += 2;
    }
    if size > 1 << 16 || size > 0 && pointer.is_null() {
        return Err(CudaError::INVALID_VALUE);
    }
    let mut area = vec![0; size];
    if size > 0 {
        // SAFETY: the buffer has this size.
        unsafe { area.as_mut_ptr().copy_from_nonoverlapping(pointer.cast(), size) };
    }
    Ok(area)
}

#[cfg(test)]
mod tests {
    use reconverge_isa::program::{Param, Resources};

    use super::*;

    fn program(name: &str, shared: u32) -> Program {
        let resources = Resources { shared_bytes: Some(shared), ..Resources::default() };
        Program { name: Some(name.to_owned()), resources, ..Program::default() }
    }

    #[test]
    fn parameters_are_those_that_the_cubin_lists() {
        let mut listed = program("k", 16);
        listed.params = vec![Param { name: None, offset: 8, bytes: 2 }];
        let layout = ParameterLayout::of(&listed, Some(8));
        assert_eq!(layout, ParameterLayout::Known(vec![Parameter { offset: 8, bytes: 2 }]));
        assert_eq!(layout.bytes(), 10);
    }

    #[test]
    fn parameters_beyond_the_largest_size_are_not_read() {
        let mut listed = program("k", 16);
        listed.params = vec![Param { name: None, offset: u32::MAX, bytes: u32::MAX }];
        let layout = ParameterLayout::of(&listed, None);
        let list = [std::ptr::null()];
        // SAFETY: the address of the parameter is not followed.
        let bytes = unsafe { layout.collect(list.as_ptr(), std::ptr::null()) };
        assert_eq!(bytes, Err(CudaError::LAUNCH_OUT_OF_RESOURCES));
    }

    #[test]
    fn the_types_of_a_mangled_name_place_parameters_that_are_not_listed() {
        // k(float*, int)
        let offsets = |shared| match ParameterLayout::of(&program("_Z1kPfi", shared), None) {
            ParameterLayout::Known(list) => list.iter().map(|one| one.offset).collect(),
            ParameterLayout::Read(list) => panic!("{list:?}"),
        };
        assert_eq!((offsets(24), offsets(28)), (vec![0, 4], vec![0, 8]));
    }

    #[test]
    fn the_words_that_a_kernel_reads_show_its_parameters() {
        let list = |read: &[bool], pointer| {
            of_words(read, pointer).iter().map(|one| (one.offset, one.bytes)).collect::<Vec<_>>()
        };
        // A pointer of eight bytes, an int with padding, a pointer.
        assert_eq!(list(&[true, false, true, false, true, false], None), [(0, 8), (8, 8), (16, 8)]);
        assert_eq!(list(&[true, true, true], None), [(0, 4), (4, 4), (8, 4)]);
        assert_eq!(list(&[true, false], Some(4)), [(0, 4), (4, 4)]);
    }

    #[test]
    fn a_word_may_stand_at_the_end_of_memory_for_a_longer_parameter() {
        let one = 7u64;
        let list = [(&raw const one).cast::<c_void>()];
        let layout = ParameterLayout::Read(vec![Parameter { offset: 0, bytes: 8 }]);
        // SAFETY: the list is whole.
        let bytes = unsafe { layout.collect(list.as_ptr(), std::ptr::null()) };
        assert_eq!(bytes, Ok(vec![7, 0, 0, 0, 0, 0, 0, 0]));
    }
}
