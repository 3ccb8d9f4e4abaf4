//! Writes a [`Drawing`] in the DOT language of Graphviz.

use std::fmt::Write as _;

use reconverge_isa::graph::EdgeKind;

use super::{Block, Drawing};

/// Returns the line style of an edge. Each kind of edge has a different style. The label of an edge states the kind.
const fn style(kind: EdgeKind) -> &'static str {
    match kind {
        EdgeKind::Next => "style=solid",
        EdgeKind::Jump => "style=bold, color=\"#0072b2\"",
        EdgeKind::Loop => "style=bold, color=\"#d55e00\", arrowhead=empty",
        EdgeKind::Break => "style=dashed, color=\"#009e73\"",
        EdgeKind::Continue => "style=dashed, color=\"#d55e00\", arrowhead=empty",
        EdgeKind::Call => "style=dotted, color=\"#cc79a7\"",
        EdgeKind::Return => "style=dotted, color=\"#cc79a7\", arrowhead=empty",
    }
}

/// Quotes lines of text as one left-aligned DOT string.
fn quoted(lines: &[String]) -> String {
    let escaped = lines.iter().map(|line| line.replace('\\', "\\\\").replace('"', "\\\""));
    format!("\"{}\"", escaped.map(|line| line + "\\l").collect::<String>())
}

fn attributes(block: &Block) -> &'static str {
    match (block.diverges(), block.reconverges()) {
        (false, false) => "",
        (true, false) => ", style=\"filled,bold\", fillcolor=\"#fff0e0\"",
        (false, true) => ", style=filled, fillcolor=\"#e0f0ff\", peripheries=2",
        (true, true) => ", style=\"filled,bold\", fillcolor=\"#f0e8f8\", peripheries=2",
    }
}

pub(super) fn dot(drawing: &Drawing) -> String {
    let mut out = String::new();
    let title = drawing.title.replace('\\', "\\\\").replace('"', "\\\"");
    let _ = writeln!(out, "digraph \"{title}\" {{");
    out.push_str("  node [shape=box, fontname=\"monospace\", fontsize=10];\n");
    out.push_str("  edge [fontname=\"monospace\", fontsize=9];\n");
    for (number, block) in drawing.blocks.iter().enumerate() {
        let _ = writeln!(out, "  b{number} [label={}{}];", quoted(&block.lines()), attributes(block));
    }
    for way in &drawing.edges {
        let (from, to, label) = (way.from, way.to, way.label());
        let _ = writeln!(out, "  b{from} -> b{to} [label=\"{label}\", {}];", style(way.kind));
    }
    out.push_str("}\n");
    out
}
