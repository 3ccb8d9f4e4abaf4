//! Writes launches of R600 and R700 as text.

use reconverge_r700::launch::{Environment, Launch, Resources};
use reconverge_r700::texture::Texture;

use super::{LaunchText, Store, bits};

/// Writes the fields that are specific to R600 and R700.
pub(super) fn fields(text: &mut LaunchText, launch: &Launch, store: &mut dyn Store) -> Result<(), String> {
    let environment = &*launch.environment;
    let whole = Environment::new(environment.chip, environment.stage);
    let cannot = |what: &str| Err(format!("launch files cannot describe {what}"));
    text.field("lanes", format_args!("{}", launch.lanes));
    text.field("gprs", format_args!("{}", environment.num_gprs));
    if let Some(entries) = environment.stack_size {
        text.field("stack", format_args!("{entries}"));
    }
    text.field("clause_temps", format_args!("{}", environment.clause_temps));
    text.field("start", format_args!("{}", environment.start));
    text.field("dx10_clamp", format_args!("{}", environment.dx10_clamp));
    text.field("prefer_vector", format_args!("{}", environment.prefer_vector));
    text.field("constants_are_buffers", format_args!("false"));
    for (name, value) in [
        ("booleans", environment.resources.booleans),
        ("base_vertex", environment.base_vertex),
        ("base_instance", environment.base_instance),
    ] {
        if value != 0 {
            text.field(name, format_args!("{value}"));
        }
    }
    if !environment.semantics.is_empty() {
        text.field("semantics", format_args!("{:?}", environment.semantics));
    }
    if let Some(covered) = &launch.covered {
        let file = store.put("covered", "bin", covered.iter().map(|lane| u8::from(*lane)).collect())?;
        text.field("covered", format_args!("\"{file}:u8\""));
    }
    if !launch.scatter.is_empty() {
        let bytes = launch.scatter.iter().flat_map(|word| word.to_le_bytes()).collect();
        text.field("scatter", format_args!("\"{}:u32\"", store.put("scatter", "bin", bytes)?));
    }
    if let Some(fetch) = &environment.fetch_program {
        let bytes = fetch.words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let file = store.put("fetch", "bin", bytes)?;
        text.field("fetch_program", format_args!("{{ words = \"{file}:u32\", start = {} }}", fetch.start));
    }
    // Launch files have no fields for the properties in the following list.
    for (differs, what) in [
        (launch.first_lane != 0, "a first lane other than 0"),
        (environment.alternate != whole.alternate, "alternate constants"),
        (environment.scratch_dwords != whole.scratch_dwords, "the size of scratch memory"),
        (environment.record_dwords != whole.record_dwords, "the size of records"),
        (!launch.global.is_empty(), "global registers"),
        (environment.call_limit != whole.call_limit, "the limit of calls"),
        (environment.dx10_loop_limit != whole.dx10_loop_limit, "the limit of loops"),
        (environment.fused_muladd_64 != whole.fused_muladd_64, "MULADD_64 with two roundings"),
        (environment.ldexp_64_integer_first != whole.ldexp_64_integer_first, "the order of LDEXP_64"),
    ] {
        if differs {
            return cannot(what);
        }
    }
    for input in &launch.inputs {
        let values = bits(&format!("r{}", input.gpr), &input.values, store)?;
        text.table("input", &[("gpr", input.gpr.to_string()), ("values", values)]);
    }
    resources(text, &environment.resources, store)
}

fn resources(text: &mut LaunchText, all: &Resources, store: &mut dyn Store) -> Result<(), String> {
    for (number, words) in all.constant_buffers.iter().enumerate().filter(|(_, words)| !words.is_empty()) {
        let rows: Vec<[u32; 1]> = words.iter().map(|word| [*word]).collect();
        let (quads, rest) = words.as_chunks::<4>();
        let values = match rest {
            [] => bits("constants", quads, store)?,
            _ => bits("constants", &rows, store)?,
        };
        text.table("constant", &[("number", number.to_string()), ("values", values)]);
    }
    if !all.constant_file.is_empty() {
        let values = bits("constants", &all.constant_file, store)?;
        text.table("constant_file", &[("number", "0".to_owned()), ("values", values)]);
    }
    for (number, constant) in all.loop_constants.iter().enumerate().filter(|(_, constant)| constant.0 != 0) {
        let word = constant.0;
        let fields = [
            ("number", number.to_string()),
            ("count", (word & 0xfff).to_string()),
            ("init", (word >> 12 & 0xfff).to_string()),
            ("inc", ((word >> 24) as u8 as i8).to_string()),
        ];
        text.table("loop", &fields);
    }
    for (number, buffer) in &all.vertex_buffers {
        let file = match buffer.bytes.is_empty() {
            true => "u8[0]".to_owned(),
            false => format!("{}:u8", store.put("buffer", "bin", buffer.bytes.to_vec())?),
        };
        let fields = [
            ("number", number.to_string()),
            ("word2", format!("{:#x}", buffer.word2())),
            ("values", format!("{file:?}")),
        ];
        text.table("buffer", &fields);
    }
    let has_border = all.samplers.values().any(|found| found.sampler.border != [0; 4]);
    for (unit, found) in &all.textures {
        if has_border && found.integer && found.integer_border {
            return Err(format!("texture {unit}: launch files cannot describe an integer border colour"));
        }
        texture(text, *unit, found, store)?;
    }
    for (number, found) in &all.samplers {
        super::sampler(text, *number, (&found.sampler, Some(found.compare)), store)?;
    }
    Ok(())
}

fn texture(text: &mut LaunchText, unit: u8, found: &Texture, store: &mut dyn Store) -> Result<(), String> {
    let Texture { image, integer, fractions, select, integer_border: _ } = found;
    let select: Option<String> = select.iter().map(|component| component.letter(*integer)).collect();
    let select = select
        .ok_or_else(|| format!("texture {unit}: launch files cannot describe its selected components"))?;
    let mut fields = super::image(unit, image, store)?;
    fields.push(("select", format!("{select:?}")));
    fields.extend(integer.then(|| ("integer", "true".to_owned())));
    fields.extend(fractions.then(|| ("fractions", "true".to_owned())));
    text.table("texture", &fields);
    Ok(())
}
