//! Launches of R600 and R700 as text.

use reconverge_r700::launch::{Launch, Stage};
use reconverge_r700::texture::{COMPARES, FILTERS, MIP_FILTERS, Texture, TextureSampler, WRAPS};
use reconverge_simt::texture::{Sampler, Shape};

use super::{LaunchText, Store, bits};

/// Writes all that a launch of this machine has of its own.
pub(super) fn fields(text: &mut LaunchText, launch: &Launch, store: &mut dyn Store) -> Result<(), String> {
    let whole = Launch::new(launch.chip, launch.stage, launch.lanes);
    let cannot = |what: &str| Err(format!("{what}: a launch file cannot say it"));
    let stage = match launch.stage {
        Stage::Pixel => "pixel",
        Stage::Vertex => "vertex",
        Stage::Geometry => "geometry",
    };
    text.field("stage", format_args!("{stage:?}"));
    text.field("gprs", format_args!("{}", launch.num_gprs));
    if let Some(entries) = launch.stack_size {
        text.field("stack", format_args!("{entries}"));
    }
    text.field("clause_temps", format_args!("{}", launch.clause_temps));
    text.field("start", format_args!("{}", launch.start));
    text.field("dx10_clamp", format_args!("{}", launch.dx10_clamp));
    text.field("prefer_vector", format_args!("{}", launch.prefer_vector));
    text.field("constants_are_buffers", format_args!("false"));
    for (name, value) in [
        ("booleans", launch.resources.booleans),
        ("base_vertex", launch.base_vertex),
        ("base_instance", launch.base_instance),
    ] {
        if value != 0 {
            text.field(name, format_args!("{value}"));
        }
    }
    if !launch.semantics.is_empty() {
        text.field("semantics", format_args!("{:?}", launch.semantics));
    }
    if let Some(covered) = &launch.covered {
        let file = store.put("covered", "bin", covered.iter().map(|lane| u8::from(*lane)).collect())?;
        text.field("covered", format_args!("\"{file}:u8\""));
    }
    if !launch.scatter.is_empty() {
        let bytes = launch.scatter.iter().flat_map(|word| word.to_le_bytes()).collect();
        text.field("scatter", format_args!("\"{}:u32\"", store.put("scatter", "bin", bytes)?));
    }
    if let Some(fetch) = &launch.fetch_program {
        let bytes = fetch.words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let file = store.put("fetch", "bin", bytes)?;
        text.field("fetch_program", format_args!("{{ words = \"{file}:u32\", start = {} }}", fetch.start));
    }
    // All that has no field.
    for (differs, what) in [
        (launch.first_lane != 0, "a first lane other than 0"),
        (launch.alternate != whole.alternate, "alternate constants"),
        (launch.scratch_dwords != whole.scratch_dwords, "the size of scratch memory"),
        (launch.record_dwords != whole.record_dwords, "the size of records"),
        (!launch.global.is_empty(), "global registers"),
        (launch.call_limit != whole.call_limit, "the limit of calls"),
        (launch.dx10_loop_limit != whole.dx10_loop_limit, "the limit of loops"),
        (launch.fused_muladd_64 != whole.fused_muladd_64, "MULADD_64 with two roundings"),
        (launch.ldexp_64_integer_first != whole.ldexp_64_integer_first, "the order of LDEXP_64"),
    ] {
        if differs {
            return cannot(what);
        }
    }
    for input in &launch.inputs {
        let values = bits(&format!("r{}", input.gpr), &input.values, store)?;
        text.table("input", &[("gpr", input.gpr.to_string()), ("values", values)]);
    }
    resources(text, launch, store)
}

fn resources(text: &mut LaunchText, launch: &Launch, store: &mut dyn Store) -> Result<(), String> {
    let all = &launch.resources;
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
            false => format!("{}:u8", store.put("buffer", "bin", buffer.bytes.clone())?),
        };
        let fields = [
            ("number", number.to_string()),
            ("word2", format!("{:#x}", buffer.word2())),
            ("values", format!("{file:?}")),
        ];
        text.table("buffer", &fields);
    }
    for (unit, found) in &all.textures {
        texture(text, *unit, found, store)?;
    }
    for (number, found) in &all.samplers {
        sampler(text, *number, found, store)?;
    }
    Ok(())
}

fn texture(text: &mut LaunchText, unit: u8, found: &Texture, store: &mut dyn Store) -> Result<(), String> {
    let Texture { image, integer, fractions, select } = found;
    let Some(first) = image.levels().first() else { return Err(format!("texture {unit} has no level")) };
    let (width, height, depth) = (first.width, first.height, first.depth);
    let (size, kind) = match image.shape() {
        Shape::D1 => (vec![width], None),
        Shape::D2 => (vec![width, height], None),
        Shape::D3 => (vec![width, height, depth], None),
        Shape::Cube => (vec![width], Some("cube")),
        Shape::D1Array => (vec![width, depth], Some("layers")),
        Shape::D2Array => (vec![width, height, depth], Some("layers")),
        Shape::CubeArray => {
            return Err(format!("texture {unit}: an array of cubes: a launch file cannot say it"));
        }
    };
    let select: Option<String> = select.iter().map(|component| component.letter(*integer)).collect();
    let select = select.ok_or_else(|| format!("texture {unit}: its select: a launch file cannot say it"))?;
    let texels = image.levels().iter().flat_map(|level| level.texels.iter().flatten());
    let bytes = texels.flat_map(|word| word.to_le_bytes()).collect();
    let file = store.put("texture", "bin", bytes)?;
    let mut fields = vec![
        ("unit", unit.to_string()),
        ("size", format!("{size:?}")),
        ("levels", image.levels().len().to_string()),
        ("texels", format!("\"{file}:bits\"")),
        ("select", format!("{select:?}")),
    ];
    fields.extend(kind.map(|kind| (kind, "true".to_owned())));
    fields.extend(integer.then(|| ("integer", "true".to_owned())));
    fields.extend(fractions.then(|| ("fractions", "true".to_owned())));
    text.table("texture", &fields);
    Ok(())
}

fn sampler(
    text: &mut LaunchText,
    number: u8,
    found: &TextureSampler,
    store: &mut dyn Store,
) -> Result<(), String> {
    let Sampler { wrap, mag, min, mip, border, min_lod, max_lod, lod_bias, unnormalised } = found.sampler;
    if unnormalised {
        return Err(format!("sampler {number} counts texels: a launch file cannot say it"));
    }
    let fields = [
        ("number", number.to_string()),
        ("wrap", format!("{:?}", wrap.map(|wrap| named(&WRAPS, wrap)))),
        ("mag", format!("{:?}", named(&FILTERS, mag))),
        ("min", format!("{:?}", named(&FILTERS, min))),
        ("mip", format!("{:?}", named(&MIP_FILTERS, mip))),
        ("border", bits("border", &[border], store)?),
        ("min_lod", format!("{min_lod:?}")),
        ("max_lod", format!("{max_lod:?}")),
        ("lod_bias", format!("{lod_bias:?}")),
        ("compare", format!("{:?}", named(&COMPARES, found.compare))),
    ];
    text.table("sampler", &fields);
    Ok(())
}

/// The name of a value in the list that has them all.
fn named<T: Copy + PartialEq>(names: &[(&'static str, T)], value: T) -> &'static str {
    names.iter().find(|(_, known)| *known == value).map_or("", |(name, _)| name)
}
