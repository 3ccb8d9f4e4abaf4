use reconverge_isa::graph::Edge;

use super::*;

fn node(pc: u32, next: &[(u32, EdgeKind)]) -> Node {
    let next = next.iter().map(|(to, kind)| Edge { to: *to, kind: *kind }).collect();
    Node { pc, next, ..Node::default() }
}

/// A loop that contains an if-else and a break, and a subroutine.
fn graph() -> Graph {
    use EdgeKind::*;
    let mut nodes = vec![
        node(0, &[(8, Next)]),
        node(8, &[(16, Next), (64, Break)]),
        node(16, &[(24, Next), (40, Jump)]),
        node(24, &[(32, Next)]),
        node(32, &[(48, Jump)]),
        node(40, &[(80, Call), (48, Next)]),
        node(48, &[(56, Next), (8, Continue)]),
        node(56, &[(8, Loop)]),
        node(64, &[(72, Next)]),
        node(72, &[]),
        node(80, &[(48, Return)]),
    ];
    nodes[1].diverges = true;
    nodes[2].diverges = true;
    nodes[6].reconverges = Some("join");
    Graph { entries: vec![0, 80], nodes }
}

fn drawing(counts: Option<&Passages>) -> Drawing {
    let text = |pc: u32| format!("op \"{pc}\" <a> & b\\");
    Drawing::new("a \"test\"", &graph(), &text, &|pc| format!("{pc:#x}"), counts)
}

#[test]
fn blocks_begin_where_ways_meet_and_end_where_they_part() {
    let starts: Vec<u32> = parts(&graph()).iter().map(|nodes| nodes[0].pc).collect();
    assert_eq!(starts, [0, 8, 16, 24, 40, 48, 56, 64, 80]);
    let lengths: Vec<usize> = parts(&graph()).iter().map(|nodes| nodes.len()).collect();
    assert_eq!(lengths, [1, 1, 1, 2, 1, 1, 1, 2, 1]);
}

#[test]
fn a_graph_is_written_for_graphviz() {
    insta::assert_snapshot!(drawing(None).dot());
}

#[test]
fn a_way_to_no_instruction_is_drawn() {
    let graph = Graph { entries: vec![0], nodes: vec![node(0, &[(9, EdgeKind::Jump)])] };
    let drawing = Drawing::new("x", &graph, &|_| "bra".to_owned(), &|pc| pc.to_string(), None);
    assert_eq!(drawing.blocks[1].heading(), "9, no instruction");
    assert!(drawing.dot().contains("b0 -> b1 [label=\"jump\""), "{}", drawing.dot());
    assert_eq!(drawing.nowhere().collect::<Vec<_>>(), ["9"]);
    let graph = Graph { entries: vec![4], nodes: Vec::new() };
    let drawing = Drawing::new("x", &graph, &|_| String::new(), &|pc| pc.to_string(), None);
    assert_eq!(drawing.blocks[0].heading(), "4, entry, no instruction");
}

#[test]
fn a_picture_is_well_formed_and_has_every_text_once() {
    let drawing = drawing(None);
    let svg = drawing.svg();
    let parsed = roxmltree::Document::parse(&svg).unwrap();
    let texts: Vec<&str> = parsed
        .descendants()
        .filter(|node| node.has_tag_name("text"))
        .filter_map(|node| node.text())
        .collect();
    for line in drawing.blocks.iter().flat_map(Block::lines) {
        assert_eq!(texts.iter().filter(|text| **text == line).count(), 1, "{line}");
    }
    let ways = parsed.descendants().filter(|node| node.attribute("marker-end").is_some());
    assert_eq!(ways.count(), drawing.edges.len());
    assert_eq!(drawing.svg(), svg, "a picture depends on the graph alone");
}

/// Blocks of the drawing do not overlap.
#[test]
fn blocks_do_not_overlap() {
    let svg = drawing(None).svg();
    let parsed = roxmltree::Document::parse(&svg).unwrap();
    let number = |node: roxmltree::Node<'_, '_>, name| node.attribute(name).unwrap().parse::<f64>().unwrap();
    let boxes: Vec<[f64; 4]> = parsed
        .descendants()
        .filter(|node| node.has_tag_name("rect") && node.attribute("class") != Some("inner"))
        .map(|node| ["x", "y", "width", "height"].map(|name| number(node, name)))
        .collect();
    assert_eq!(boxes.len(), 9);
    for (at, [x, y, width, height]) in boxes.iter().enumerate() {
        for [left, top, across, down] in &boxes[at + 1..] {
            let apart = x + width <= *left || left + across <= *x || y + height <= *top || top + down <= *y;
            assert!(apart, "{svg}");
        }
    }
}

#[test]
fn the_kinds_of_ways_differ_without_colour() {
    use EdgeKind::*;
    let all = [Next, Jump, Loop, Break, Continue, Call, Return];
    let nodes = std::iter::once(node(0, &all.map(|kind| (8, kind)))).chain([node(8, &[])]);
    let graph = Graph { entries: vec![0], nodes: nodes.collect() };
    let dot = Drawing::new("x", &graph, &|_| String::new(), &|pc| pc.to_string(), None).dot();
    let ways = dot.lines().filter(|line| line.contains("->"));
    let mut plain: Vec<String> = ways
        .map(|line| line.split(", ").skip(1).filter(|part| !part.starts_with("color")).collect::<String>())
        .collect();
    plain.sort();
    plain.dedup();
    assert_eq!(plain.len(), all.len(), "{dot}");
}

#[test]
fn lanes_are_counted_on_the_ways_that_they_took() {
    let mut counts = Passages::new(4);
    counts.issues(0, &[0, 8], Mask(0b1111));
    counts.issues(0, &[16], Mask(0b0111));
    counts.issues(0, &[24, 32], Mask(0b0011));
    counts.issues(1, &[0], Mask(0b1111));
    counts.issues(0, &[40], Mask(0b0100));
    counts.issues(0, &[48], Mask(0b0111));
    counts.issues(0, &[64], Mask(0b1000));
    let lanes = [(0, 8), (8, 16), (8, 64), (16, 24), (16, 40), (24, 32), (32, 48), (40, 48), (48, 56)];
    let lanes = lanes.map(|(from, to)| counts.lanes(from, to));
    assert_eq!(lanes, [4, 3, 1, 2, 1, 2, 2, 1, 0]);
    let drawing = drawing(Some(&counts));
    let way = drawing.edges.iter().find(|way| (way.from, way.to) == (2, 4)).unwrap();
    assert_eq!(way.label(), "jump: 1 lane");
    assert_eq!(drawing.blocks[0].counted().unwrap(), "executed 2, lanes 8, diverged 0");
}

/// Lane 3 leaves the loop at address 8, and waits while the other lanes iterate. Lane 3 continues at address 64 without
/// executing the instructions between 8 and 64. In the same way, lanes that skip one side of the `if` wait while the
/// other lanes execute this side.
#[test]
fn lanes_that_wait_are_on_the_ways_that_they_come_along() {
    let mut counts = Passages::new(4);
    counts.issues(0, &[0, 8], Mask(0b1111));
    counts.issues(0, &[16, 24, 32], Mask(0b0011));
    // Lane 2 executes the instruction at address 8, waits, and continues at address 56. No edge leads from 8 to 56.
    counts.issues(0, &[56], Mask(0b0111));
    counts.issues(0, &[64, 72], Mask(0b1111));
    let drawing = drawing(Some(&counts));
    let block = |name: &str| drawing.blocks.iter().position(|block| block.name == name).unwrap();
    let into = |name: &str| -> u64 {
        let to = block(name);
        drawing.edges.iter().filter(|way| way.to == to).filter_map(|way| way.lanes).sum()
    };
    // One edge leads from 56 to 8, and another edge leads from 8 to 64.
    assert_eq!((into("0x40"), drawing.blocks[block("0x40")].counts.unwrap().lanes), (4, 4));
    assert_eq!(
        (into("0x8"), drawing.blocks[block("0x8")].counted().unwrap()),
        (7, "executed 1, lanes 4, waiting 3, diverged 0".to_owned(),)
    );
}
