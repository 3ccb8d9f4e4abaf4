//! Parameters of kernels. This file determines the offsets and the sizes of parameters, and collects the bytes of the
//! parameters for a launch.

use std::ffi::c_void;

use reconverge_isa::Program;
use reconverge_tesla::code::Code;
use reconverge_tesla::inst::{Base, Chip, Mem, Memory, Op, Operand, Space, Stage};
use reconverge_tesla::launch::PARAMETERS;
use reconverge_workbench::tesla::names::params_of_mangled;

use crate::image::readable;
use crate::status::CudaError;

/// Maximum size of all parameters of a kernel, in bytes. (CUDA C Programming Guide 4.2, B.1.4)
pub(crate) const MOST: usize = 256;

/// A parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Parameter {
    pub(crate) offset: u32,
    pub(crate) bytes: u32,
}

/// The layout of a kernel's parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ParameterLayout {
    /// The layout is known. Either the cubin lists the parameters, or the layout follows from the types in the kernel's
    /// mangled name.
    Known(Vec<Parameter>),
    /// The layout is derived from the words that the code reads. If the kernel reads the second word of a pair, each
    /// word of the pair is a parameter. If the kernel does not read the second word, the pair is one parameter of eight
    /// bytes. The parameter is a 64-bit pointer, or a word with padding. No chip of this generation reads the second
    /// word of a 64-bit pointer.
    Read(Vec<Parameter>),
}

impl ParameterLayout {
    /// Returns the layout of a kernel. `pointer_bytes` is the size of a pointer, if the cubin states this size.
    pub(crate) fn of(program: &Program, pointer_bytes: Option<u32>) -> ParameterLayout {
        if !program.params.is_empty() {
            let listed = program.params.iter();
            return ParameterLayout::Known(
                listed.map(|param| Parameter { offset: param.offset, bytes: param.bytes }).collect(),
            );
        }
        // If the cubin does not state the size of the shared memory, the maximum size applies.
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
        // Prefers the pointer size for which the parameters exactly fill the parameter space of `bytes` bytes. Shared
        // variables can also follow the parameters in this space. So if no pointer size fits exactly, the code takes
        // the first pointer size whose parameters fit into the space.
        let exact = placed.iter().find(|list| end(list) == bytes);
        match exact.or_else(|| placed.iter().find(|list| end(list) <= bytes)) {
            Some(list) => ParameterLayout::Known(list.clone()),
            None => ParameterLayout::Read(of_words(&words_read(program, bytes), pointer_bytes)),
        }
    }

    /// Returns the size of all parameters in bytes.
    pub(crate) fn bytes(&self) -> usize {
        match self {
            ParameterLayout::Known(list) | ParameterLayout::Read(list) => {
                list.iter().map(|one| one.offset as usize + one.bytes as usize).max().unwrap_or(0)
            }
        }
    }

    /// Returns the parameters, if their number is known.
    pub(crate) fn list(&self) -> Option<&[Parameter]> {
        match self {
            ParameterLayout::Known(list) => Some(list),
            ParameterLayout::Read(_) => None,
        }
    }

    /// Returns the bytes of the parameters for a launch. The caller passes either `parameters` or `extra`. `parameters`
    /// lists the address of each parameter. `extra` contains the address of a buffer with the bytes of all parameters.
    ///
    /// # Safety
    /// Each pointer is null or points to the list that `cuLaunchKernel` documents.
    pub(crate) unsafe fn collect(
        &self,
        parameters: *const *const c_void,
        extra: *const *const c_void,
    ) -> Result<Vec<u8>, CudaError> {
        match (parameters.is_null(), extra.is_null()) {
            (false, false) => Err(CudaError::INVALID_VALUE),
            // SAFETY: `extra` is not null, so `extra` points to the list that the documentation of `cuLaunchKernel`
            // describes.
            (true, false) => unsafe { of_extra(extra) },
            (true, true) => match self {
                ParameterLayout::Known(list) if !list.is_empty() => Err(CudaError::INVALID_VALUE),
                _ => Ok(Vec::new()),
            },
            // SAFETY: `parameters` is not null, so `parameters` points to the list that the documentation of
            // `cuLaunchKernel` describes.
            (false, true) => unsafe { self.of_addresses(parameters) },
        }
    }

    unsafe fn of_addresses(&self, parameters: *const *const c_void) -> Result<Vec<u8>, CudaError> {
        // The sizes in a cubin may have any value, so this function checks the sizes.
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
                    // SAFETY: the program has a parameter of this size at this address.
                    unsafe { to.as_mut_ptr().copy_from_nonoverlapping(at.cast(), to.len()) };
                }
            }
            // The list that the program passes may be shorter than the layout. The layout may also contain variables
            // that follow the parameters in shared memory. A parameter of eight bytes in the layout may be a parameter
            // of four bytes in the program.
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

/// Returns for each word of the parameters whether the kernel reads the word. Words that a kernel writes are variables,
/// which follow the parameters. The result therefore ends before the first word that the kernel writes.
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

/// Whether the last word can be the second word of a 64-bit pointer.
fn pairs_end(read: &[bool]) -> bool {
    matches!(read, [.., true, false]) && read.len().is_multiple_of(2)
}

/// Derives the parameters from the words that the kernel reads.
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

/// Derives the parameters from the types in the mangled name of the kernel.
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

/// Returns the bytes of the buffer that `CU_LAUNCH_PARAM_BUFFER_POINTER` and `CU_LAUNCH_PARAM_BUFFER_SIZE` describe.
unsafe fn of_extra(extra: *const *const c_void) -> Result<Vec<u8>, CudaError> {
    const END: usize = 0;
    const POINTER: usize = 1;
    const SIZE: usize = 2;
    let (mut pointer, mut size) = (std::ptr::null(), 0);
    let mut at = 0;
    loop {
        // SAFETY: the list consists of pairs of a name and a value, and ends with `END`.
        let name = unsafe { *extra.add(at) } as usize;
        if name == END {
            break;
        }
        // SAFETY: a value follows each name except for `END`.
        let value = unsafe { *extra.add(at + 1) };
        match name {
            POINTER => pointer = value,
            SIZE if value.is_null() => return Err(CudaError::INVALID_VALUE),
            // SAFETY: the value is the address of a `usize`.
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
        // SAFETY: the program promises that the buffer has `size` bytes.
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
        // SAFETY: `collect` fails before `collect` reads the parameter.
        let bytes = unsafe { layout.collect(list.as_ptr(), std::ptr::null()) };
        assert_eq!(bytes, Err(CudaError::LAUNCH_OUT_OF_RESOURCES));
    }

    #[test]
    fn the_types_of_a_mangled_name_place_parameters_that_are_not_listed() {
        // The name is the mangled form of `k(float*, int)`.
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
        // The words are a pointer of eight bytes, an `int` with padding, and another pointer.
        assert_eq!(list(&[true, false, true, false, true, false], None), [(0, 8), (8, 8), (16, 8)]);
        assert_eq!(list(&[true, true, true], None), [(0, 4), (4, 4), (8, 4)]);
        assert_eq!(list(&[true, false], Some(4)), [(0, 4), (4, 4)]);
    }

    #[test]
    fn a_word_may_stand_at_the_end_of_memory_for_a_longer_parameter() {
        let one = 7u64;
        let list = [(&raw const one).cast::<c_void>()];
        let layout = ParameterLayout::Read(vec![Parameter { offset: 0, bytes: 8 }]);
        // SAFETY: the list has an address for every parameter.
        let bytes = unsafe { layout.collect(list.as_ptr(), std::ptr::null()) };
        assert_eq!(bytes, Ok(vec![7, 0, 0, 0, 0, 0, 0, 0]));
    }
}
