//! `cuInit`, which also registers the functions that run when a context ends.

use std::ffi::c_uint;

use crate::status::CallResult;
use crate::{array, context, driver, event, host, library, module, queue, stream, texture};

/// `cuInit`
pub(crate) fn init(flags: c_uint) -> CallResult {
    driver::init(flags)?;
    context::set_endings(&[
        stream::end_of_context,
        event::end_of_context,
        library::end_of_context,
        module::end_of_context,
        array::end_of_context,
        texture::end_of_context,
        host::end_of_context,
    ]);
    queue::survive_fork(context::lose);
    Ok(())
}
