//! Writes launches of Tesla as text.

use reconverge_tesla::driver_fixes::DriverFixes;
use reconverge_tesla::flow::Limits;
use reconverge_tesla::launch::{Compute, Fragment, Setup, Varying, Vertex};
use reconverge_tesla::meaning::Modes;
use reconverge_tesla::spaces::{Segment, Tiling};
use reconverge_tesla::texture::{Component, Texture};

use super::{LaunchText, Store, image, sampler, typed};
use crate::nv50::buffer_name;

/// Writes the fields of a fragment launch.
pub(super) fn fragments(
    text: &mut LaunchText,
    launch: &Fragment,
    store: &mut dyn Store,
) -> Result<(), String> {
    if !launch.centres.is_empty() || !launch.centroids.is_empty() {
        return Err("launch files cannot describe the centres of fragments".to_owned());
    }
    text.field("lanes", format_args!("{}", launch.lanes));
    text.field("helpers", format_args!("{}", launch.helpers));
    if let Some(results) = launch.kept {
        text.field("results", format_args!("{results}"));
    }
    if !launch.covered.is_empty() {
        let file =
            store.put("covered", "bin", launch.covered.iter().map(|lane| u8::from(*lane)).collect())?;
        text.field("covered", format_args!("\"{file}:u8\""));
    }
    setup(text, &launch.setup)?;
    for (word, varying) in &launch.varyings {
        match varying {
            Varying::Lanes(values) => input(text, *word, values, store)?,
            Varying::Plane { .. } => {
                return Err(format!("input {word}: not implemented: a launch file with a plane"));
            }
        }
    }
    resources(text, &launch.setup, store)
}

/// Writes the fields of a vertex launch.
pub(super) fn vertices(text: &mut LaunchText, launch: &Vertex, store: &mut dyn Store) -> Result<(), String> {
    text.field("lanes", format_args!("{}", launch.lanes));
    setup(text, &launch.setup)?;
    for (word, values) in &launch.inputs {
        input(text, *word, values, store)?;
    }
    resources(text, &launch.setup, store)
}

/// Writes the fields of a compute launch.
pub(super) fn grid(text: &mut LaunchText, launch: &Compute, store: &mut dyn Store) -> Result<(), String> {
    let Compute { grid, block, grid_id, params, segments, memory, .. } = launch;
    text.field("grid", format_args!("{grid:?}"));
    text.field("block", format_args!("{block:?}"));
    text.field("oversized", format_args!("true"));
    text.field("grid_id", format_args!("{grid_id}"));
    if let Some(bytes) = launch.shared_bytes {
        text.field("shared_bytes", format_args!("{bytes}"));
    }
    if launch.dynamic_shared != 0 {
        text.field("shared", format_args!("{}", launch.dynamic_shared));
    }
    if let Some(barriers) = launch.barriers {
        text.field("barriers", format_args!("{barriers}"));
    }
    if launch.setup.driver_fixes.is_some() {
        text.field("driver_fixes", format_args!("{:?}", DriverFixes::NAME));
    }
    setup(text, &launch.setup)?;
    if !params.is_empty() {
        let words: Vec<u32> = params.as_chunks().0.iter().map(|word| u32::from_le_bytes(*word)).collect();
        let values = typed("parameters", "bits", (words.len(), &words), store)?;
        let fields = [("name", "\"parameters\"".to_owned()), ("offset", "0".to_owned()), ("value", values)];
        text.table("param", &fields);
    }
    for (number, segment) in segments.0.iter().enumerate() {
        let Some(Segment { base, limit, tiling, lenient }) = segment else { continue };
        let mut fields = vec![("number", number.to_string())];
        fields.push(("base", format!("{base:#x}")));
        fields.push(("limit", format!("{limit:#x}")));
        if let Some(Tiling { pitch, rows }) = tiling {
            fields.push(("pitch", pitch.to_string()));
            fields.push(("tile_rows", (1 << rows).to_string()));
        }
        fields.extend(lenient.then(|| ("lenient", "true".to_owned())));
        text.table("segment", &fields);
    }
    for buffer in memory.buffers() {
        let words: Vec<u32> =
            buffer.bytes.as_chunks().0.iter().map(|word| u32::from_le_bytes(*word)).collect();
        let values = typed("buffer", "bits", (words.len(), &words), store)?;
        text.table(
            "buffer",
            &[
                ("name", format!("{:?}", buffer_name(buffer.address))),
                ("address", format!("{:#x}", buffer.address)),
                ("values", values),
            ],
        );
    }
    resources(text, &launch.setup, store)
}

fn input(text: &mut LaunchText, word: u16, values: &[u32], store: &mut dyn Store) -> Result<(), String> {
    let values = typed("word", "bits", (1, values), store)?;
    text.table("input", &[("word", word.to_string()), ("values", values)]);
    Ok(())
}

/// Writes the fields that launches of all stages have.
fn setup(text: &mut LaunchText, setup: &Setup) -> Result<(), String> {
    let Modes { mul_zero_wins, .. } = setup.modes;
    if setup.limits != Limits::default() || setup.modes != (Modes { mul_zero_wins, ..Modes::default() }) {
        return Err("launch files cannot describe limits and modes of the chip".to_owned());
    }
    text.field("registers", format_args!("{}", setup.registers));
    text.field("local_bytes", format_args!("{}", setup.local_bytes));
    text.field("mul_zero_wins", format_args!("{mul_zero_wins}"));
    Ok(())
}

/// Writes constants, textures and samplers.
fn resources(text: &mut LaunchText, setup: &Setup, store: &mut dyn Store) -> Result<(), String> {
    for bank in 0..16 {
        // Zeros at the end of a bank are omitted, because bytes past the end of a bank read as zero.
        let bytes = setup.constants.bank(bank);
        let used = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
        if used == 0 {
            continue;
        }
        let mut padded = bytes[..used].to_vec();
        padded.resize(used.next_multiple_of(16), 0);
        let words = padded.as_chunks::<4>().0.iter().map(|word| u32::from_le_bytes(*word));
        let values = typed("constants", "bits", (4, &words.collect::<Vec<_>>()), store)?;
        text.table("constant", &[("bank", bank.to_string()), ("values", values)]);
    }
    for (unit, Texture { image: found, integer, compared, .. }) in &setup.textures.textures {
        let mut fields = image(*unit, found, store)?;
        let select: String = compared
            .components
            .iter()
            .map(|component| match component {
                Component::Share => 'x',
                Component::Zero => '0',
                Component::One => '1',
            })
            .collect();
        fields.push(("select", format!("{select:?}")));
        fields.extend(integer.then(|| ("integer", "true".to_owned())));
        fields.extend(compared.clamps.then(|| ("fractions", "true".to_owned())));
        text.table("texture", &fields);
    }
    for (number, found) in &setup.textures.samplers {
        sampler(text, *number, (&found.sampler, found.compare), store)?;
    }
    Ok(())
}
