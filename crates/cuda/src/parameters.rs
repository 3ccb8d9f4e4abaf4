//! Parameters of kernels: where each one is, and their bytes for a launch.

use std::ffi::c_void;

use reconverge_isa::Program;
use reconverge_tesla::launch::PARAMETERS;
use reconverge_workbench::tesla::names::params_of_mangled;

use crate::image::readable;
use crate::status::Error;

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
pub(crate) enum Layout {
    /// The cubin lists them, or the types in the kernel's name place them.
    Known(Vec<Parameter>),
    /// Only a bound of their size is known: each is taken for a word of four bytes.
    Words(u32),
}

impl Layout {
    /// The layout of a kernel. `pointer_bytes`: of a parameter, if the cubin states it.
    pub(crate) fn of(program: &Program, pointer_bytes: Option<u32>) -> Layout {
        if !program.params.is_empty() {
            let listed = program.params.iter();
            return Layout::Known(
                listed.map(|param| Parameter { offset: param.offset, bytes: param.bytes }).collect(),
            );
        }
        let shared = program.resources.shared_bytes.unwrap_or(0);
        let bytes = program.resources.param_bytes.unwrap_or_else(|| shared.saturating_sub(PARAMETERS));
        if bytes == 0 {
            return Layout::Known(Vec::new());
        }
        let widths: &[usize] = match pointer_bytes {
            Some(4) => &[4],
            Some(8) => &[8],
            _ => &[4, 8],
        };
        let placed: Vec<_> = widths.iter().filter_map(|width| by_name(program, *width)).collect();
        let end = |list: &Vec<Parameter>| list.last().map_or(0, |last| last.offset + last.bytes);
        // The width that fills the parameters exactly; behind them, shared variables may follow.
        let exact = placed.iter().find(|list| end(list) == bytes);
        match exact.or_else(|| placed.iter().find(|list| end(list) <= bytes)) {
            Some(list) => Layout::Known(list.clone()),
            None => Layout::Words(bytes / 4),
        }
    }

    /// Bytes of the parameters; those of words are a bound.
    pub(crate) fn bytes(&self) -> usize {
        match self {
            Layout::Known(list) => {
                list.iter().map(|one| one.offset as usize + one.bytes as usize).max().unwrap_or(0)
            }
            Layout::Words(count) => 4 * *count as usize,
        }
    }

    /// Number of parameters, if it is known.
    pub(crate) fn list(&self) -> Option<&[Parameter]> {
        match self {
            Layout::Known(list) => Some(list),
            Layout::Words(_) => None,
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
    ) -> Result<Vec<u8>, Error> {
        match (parameters.is_null(), extra.is_null()) {
            (false, false) => Err(Error::INVALID_VALUE),
            // SAFETY: as above.
            (true, false) => unsafe { of_extra(extra) },
            (true, true) => match self {
                Layout::Known(list) if !list.is_empty() => Err(Error::INVALID_VALUE),
                _ => Ok(Vec::new()),
            },
            // SAFETY: as above.
            (false, true) => unsafe { self.of_addresses(parameters) },
        }
    }

    unsafe fn of_addresses(&self, parameters: *const *const c_void) -> Result<Vec<u8>, Error> {
        let mut area = vec![0; self.bytes()];
        match self {
            Layout::Known(list) => {
                for (index, Parameter { offset, bytes }) in list.iter().enumerate() {
                    // SAFETY: the list has an address for each parameter.
                    let at = unsafe { *parameters.add(index) };
                    if at.is_null() {
                        return Err(Error::INVALID_VALUE);
                    }
                    let to = &mut area[*offset as usize..][..*bytes as usize];
                    // SAFETY: there is a parameter of this size.
                    unsafe { to.as_mut_ptr().copy_from_nonoverlapping(at.cast(), to.len()) };
                }
            }
            // The list may end before the bound: the words behind it are shared variables.
            Layout::Words(_) => {
                let mut count = 0;
                for (index, to) in area.as_chunks_mut::<4>().0.iter_mut().enumerate() {
                    let mut address = [0; size_of::<usize>()];
                    let entry = parameters.wrapping_add(index) as usize;
                    let address = match readable(entry, &mut address) {
                        count if count == address.len() => usize::from_ne_bytes(address),
                        _ => break,
                    };
                    if address == 0 || readable(address, to) != 4 {
                        break;
                    }
                    count = index + 1;
                }
                area.truncate(4 * count);
            }
        }
        Ok(area)
    }
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
unsafe fn of_extra(extra: *const *const c_void) -> Result<Vec<u8>, Error> {
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
            SIZE if value.is_null() => return Err(Error::INVALID_VALUE),
            // SAFETY: the value is the address of the size.
            SIZE => size = unsafe { value.cast::<usize>().read_unaligned() },
            _ => return Err(Error::INVALID_VALUE),
        }
        at += 2;
    }
    if size > 1 << 16 || size > 0 && pointer.is_null() {
        return Err(Error::INVALID_VALUE);
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
        let layout = Layout::of(&listed, Some(8));
        assert_eq!(layout, Layout::Known(vec![Parameter { offset: 8, bytes: 2 }]));
        assert_eq!(layout.bytes(), 10);
    }

    #[test]
    fn the_types_of_a_mangled_name_place_parameters_that_are_not_listed() {
        // k(float*, int)
        let offsets = |shared| match Layout::of(&program("_Z1kPfi", shared), None) {
            Layout::Known(list) => list.iter().map(|one| one.offset).collect(),
            Layout::Words(count) => vec![count; 9],
        };
        assert_eq!((offsets(24), offsets(28)), (vec![0, 4], vec![0, 8]));
        assert_eq!(Layout::of(&program("k", 28), None), Layout::Words(3));
    }

    #[test]
    fn words_end_where_the_list_of_addresses_does() {
        let (one, two) = (1u32, 2u32);
        let list = [(&raw const one).cast::<c_void>(), (&raw const two).cast(), std::ptr::null()];
        // SAFETY: the list is whole.
        let bytes = unsafe { Layout::Words(9).collect(list.as_ptr(), std::ptr::null()) };
        assert_eq!(bytes, Ok(vec![1, 0, 0, 0, 2, 0, 0, 0]));
    }
}
