//! Writes launches of R500 as text.

use reconverge_r500::launch::{Environment, Hardware, Launch};
use reconverge_r500::pvs;

use super::{LaunchText, Store, bits, image, sampler};

/// Writes the fields of a launch of the fragment unit.
pub(super) fn fragments(text: &mut LaunchText, launch: &Launch, store: &mut dyn Store) -> Result<(), String> {
    let Environment { constants: all, textures, hardware } = &*launch.environment;
    let Hardware { group_width, limits, scope } = *hardware;
    if limits.is_some() || scope != Hardware::default().scope {
        return Err("not implemented: a launch file with stack sizes".to_owned());
    }
    text.field("lanes", format_args!("{}", launch.lanes));
    text.field("group_width", format_args!("{group_width}"));
    for input in &launch.inputs {
        let values = bits(&format!("temp{}", input.temp), &input.values, store)?;
        text.table("input", &[("temp", input.temp.to_string()), ("values", values)]);
    }
    constants(text, all, store)?;
    for (unit, texture) in textures {
        let fields = image(*unit, &texture.image, store)?;
        text.table("texture", &fields);
        sampler(text, *unit, (&texture.sampler, None), store)?;
    }
    Ok(())
}

/// Writes the fields of a launch of the vertex unit.
pub(super) fn vertices(
    text: &mut LaunchText,
    launch: &pvs::launch::Launch,
    store: &mut dyn Store,
) -> Result<(), String> {
    text.field("lanes", format_args!("{}", launch.vertices));
    for input in &launch.inputs {
        let values = bits(&format!("i{}", input.register), &input.values, store)?;
        text.table("attribute", &[("number", input.register.to_string()), ("values", values)]);
    }
    constants(text, &launch.environment.constants, store)
}

/// Writes the constants that are not zero.
fn constants(
    text: &mut LaunchText,
    constants: &[(u8, [u32; 4])],
    store: &mut dyn Store,
) -> Result<(), String> {
    for (number, value) in constants.iter().filter(|(_, value)| *value != [0; 4]) {
        let values = bits("constant", &[*value], store)?;
        text.table("constant", &[("number", number.to_string()), ("values", values)]);
    }
    Ok(())
}
