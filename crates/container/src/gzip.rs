//! A file in another format of this crate, compressed with gzip.

use std::io::Read;

use flate2::read::MultiGzDecoder;
use reconverge_isa::Image;
use reconverge_isa::limits::FILE;
use reconverge_isa::program::CodeAt;

use crate::bytes::Bytes;
use crate::{Error, Hints, magic};

/// Decompresses a file and reads the decompressed contents.
pub(crate) fn load(bytes: &[u8], hints: &Hints) -> Result<Image, Error> {
    if !bytes.starts_with(magic::GZIP) {
        let found = Bytes::of(bytes).u32_be("the magic number", 0)? >> 8;
        return Err(Error::value("the magic number", 0, found, "0x1f8b08 (gzip)"));
    }
    let mut content = Vec::new();
    let unpacked = MultiGzDecoder::new(bytes).take(FILE.get().saturating_add(1)).read_to_end(&mut content);
    if unpacked.is_err() {
        let remedy = "its data are damaged or truncated";
        return Err(Error::Unsupported { at: 0, what: "a gzip file", remedy });
    }
    if content.len() as u64 > FILE.get() {
        return Err(Error::Limit(FILE.exceeded()));
    }
    if content.starts_with(magic::GZIP) {
        let remedy = "it is compressed twice: unpack it first";
        return Err(Error::Unsupported { at: 0, what: "a gzip file", remedy });
    }
    let mut image = crate::load(&content, &Hints { format: None, ..hints.clone() })?;
    for program in &mut image.programs {
        program.code_at = CodeAt::Nowhere;
    }
    Ok(image)
}
