//! Draws a [`Drawing`] as SVG, with blocks in layers from top to bottom.

use std::fmt::Write as _;

use dagre::graph::{Graph, GraphOptions};
use dagre::{EdgeLabel, LayoutOptions, NodeLabel, Point, layout};
use reconverge_isa::graph::EdgeKind;

use super::{Block, Drawing};

/// Width of a character and height of a line, in pixels.
const LETTER: f64 = 7.25;
const LINE: f64 = 16.0;
/// Space between a block's border and its text, in pixels.
const PADDING: f64 = 8.0;

const STYLE: &str = "
  svg { background: #ffffff; --line: #333333; --text: #111111; --block: #f8f8f8; --diverges: #fff0e0;
        --reconverges: #e0f0ff; --both: #f0e8f8; --jump: #0072b2; --loop: #d55e00; --break: #007a58; --call: #a0458a }
  @media (prefers-color-scheme: dark) {
    svg { background: #16181c; --line: #c8c8c8; --text: #eeeeee; --block: #22252b; --diverges: #3a2c18;
          --reconverges: #16304a; --both: #33284a; --jump: #56b4e9; --loop: #e69f00; --break: #3fd0a4; --call: #e09ac4 }
  }
  text { font: 12px monospace; fill: var(--text); white-space: pre }
  .heading { font-weight: bold }
  rect { fill: var(--block); stroke: var(--line) }
  .diverges { fill: var(--diverges); stroke-width: 2.5 }
  .reconverges { fill: var(--reconverges) }
  .both { fill: var(--both); stroke-width: 2.5 }
  .inner { fill: none; stroke-width: 1 }
  path { fill: none; stroke: var(--line); stroke-width: 1.3 }
  .jump { stroke: var(--jump); stroke-width: 2 }
  .loop { stroke: var(--loop); stroke-width: 2; stroke-dasharray: 12 3 }
  .break { stroke: var(--break); stroke-width: 2; stroke-dasharray: 6 4 }
  .continue { stroke: var(--loop); stroke-width: 2; stroke-dasharray: 2 3 }
  .call { stroke: var(--call); stroke-width: 2; stroke-dasharray: 8 3 2 3 }
  .return { stroke: var(--call); stroke-width: 2; stroke-dasharray: 8 3 2 3 2 3 }
  marker path { fill: context-stroke; stroke: none }
  .way { paint-order: stroke; stroke: var(--halo, #ffffff); stroke-width: 4px; text-anchor: middle }
  @media (prefers-color-scheme: dark) { .way { --halo: #16181c } }
";

/// Escapes a text for XML.
fn escaped(text: &str) -> String {
    let plain = |letter: char| match letter {
        '&' => "&amp;".to_owned(),
        '<' => "&lt;".to_owned(),
        '>' => "&gt;".to_owned(),
        '"' => "&quot;".to_owned(),
        // XML 1.0 does not allow control characters.
        control if control.is_control() => "\u{fffd}".to_owned(),
        other => other.to_string(),
    };
    text.chars().map(plain).collect()
}

fn width(text: &str) -> f64 {
    text.chars().count() as f64 * LETTER
}

/// Returns an SVG path that follows the points of an edge. The first point is at the source block, and the last point
/// is at the target block.
fn curve(points: &[Point]) -> String {
    let [first, middle @ .., last] = points else { return String::new() };
    let mut path = format!("M{:.1} {:.1}", first.x, first.y);
    for (number, point) in middle.iter().enumerate() {
        let next = middle.get(number + 1);
        let end = next.map_or((last.x, last.y), |next| ((point.x + next.x) / 2., (point.y + next.y) / 2.));
        let _ = write!(path, " Q{:.1} {:.1} {:.1} {:.1}", point.x, point.y, end.0, end.1);
    }
    if middle.is_empty() {
        let _ = write!(path, " L{:.1} {:.1}", last.x, last.y);
    }
    path
}

fn class(block: &Block) -> &'static str {
    match (block.diverges(), block.reconverges()) {
        (false, false) => "plain",
        (true, false) => "diverges",
        (false, true) => "reconverges",
        (true, true) => "both",
    }
}

const fn class_of(kind: EdgeKind) -> &'static str {
    match kind {
        EdgeKind::Next => "next",
        kind => kind.name(),
    }
}

pub(super) fn svg(drawing: &Drawing) -> String {
    let mut graph = Graph::with_options(GraphOptions { directed: true, multigraph: true, compound: false });
    let lines: Vec<Vec<String>> = drawing.blocks.iter().map(Block::lines).collect();
    for (number, lines) in lines.iter().enumerate() {
        let widest = lines.iter().map(|line| width(line)).fold(0., f64::max);
        let height = lines.len() as f64 * LINE + 2. * PADDING;
        let label = NodeLabel { width: widest + 2. * PADDING, height, ..NodeLabel::default() };
        graph.set_node(number.to_string(), Some(label));
    }
    for (number, way) in drawing.edges.iter().enumerate() {
        let label = EdgeLabel { width: width(&way.label()) + PADDING, height: LINE, ..EdgeLabel::default() };
        let (from, to) = (way.from.to_string(), way.to.to_string());
        graph.set_edge(from.as_str(), to.as_str(), Some(label), Some(number.to_string().as_str()));
    }
    let options = LayoutOptions { nodesep: 40., edgesep: 24., ranksep: 28., ..LayoutOptions::default() };
    layout(&mut graph, Some(options));

    let (mut shapes, mut right, mut bottom) = (String::new(), 0_f64, 0_f64);
    for (number, way) in drawing.edges.iter().enumerate() {
        let (from, to) = (way.from.to_string(), way.to.to_string());
        let Some(edge) = graph.edge(&from, &to, Some(&number.to_string())) else { continue };
        let class = class_of(way.kind);
        let path = curve(&edge.points);
        let _ = writeln!(shapes, "<path class=\"{class}\" d=\"{path}\" marker-end=\"url(#arrow)\"/>");
        if let (Some(x), Some(y)) = (edge.x, edge.y) {
            let label = way.label();
            let _ = writeln!(shapes, "<text class=\"way\" x=\"{x:.1}\" y=\"{:.1}\">{label}</text>", y + 4.);
            right = right.max(x + width(&label) / 2.);
        }
        for point in &edge.points {
            (right, bottom) = (right.max(point.x), bottom.max(point.y));
        }
    }
    for (number, (block, lines)) in drawing.blocks.iter().zip(&lines).enumerate() {
        let Some(node) = graph.node(&number.to_string()) else { continue };
        let (left, top) = (node.x.unwrap_or(0.) - node.width / 2., node.y.unwrap_or(0.) - node.height / 2.);
        (right, bottom) = (right.max(left + node.width), bottom.max(top + node.height));
        let _ = writeln!(shapes, "<g id=\"b{number}\"><title>{}</title>", escaped(&block.heading()));
        let mut rectangle = |class: &str, inset: f64| {
            let (x, y) = (left + inset, top + inset);
            let (width, height) = (node.width - 2. * inset, node.height - 2. * inset);
            let _ = writeln!(
                shapes,
                "<rect class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\"/>"
            );
        };
        rectangle(class(block), 0.);
        if block.reconverges() {
            rectangle("inner", 3.);
        }
        for (row, line) in lines.iter().enumerate() {
            let heading = if row == 0 { " class=\"heading\"" } else { "" };
            let (x, y) = (left + PADDING, top + PADDING + LINE * (row as f64 + 0.75));
            let _ = writeln!(shapes, "<text{heading} x=\"{x:.1}\" y=\"{y:.1}\">{}</text>", escaped(line));
        }
        shapes.push_str("</g>\n");
    }
    let title = escaped(&drawing.title);
    let margin = 16.;
    let (across, down) = (right + 2. * margin, bottom + 2. * margin);
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{across:.0}\" height=\"{down:.0}\" \
         viewBox=\"-{margin:.0} -{margin:.0} {across:.0} {down:.0}\" role=\"img\">\n<title>{title}</title>\n\
         <style>{STYLE}</style>\n<defs><marker id=\"arrow\" viewBox=\"0 0 10 10\" refX=\"9\" refY=\"5\" \
         markerWidth=\"9\" markerHeight=\"9\" markerUnits=\"userSpaceOnUse\" orient=\"auto\">\
         <path d=\"M0 0 L10 5 L0 10 z\"/></marker></defs>\n{shapes}</svg>\n"
    )
}
