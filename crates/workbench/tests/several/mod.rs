//! Several programs in a text. The second one is called `pixel main`.

use reconverge_isa::program::Image;
use reconverge_workbench::open::Opened;
use reconverge_workbench::{Known, Style, open};
use reconverge_workbench::{Target, assemble, round_trip_image};

pub(crate) fn text(target: &Target, image: &Image) -> String {
    target.machine().image_text(target, image, Style::default()).unwrap()
}

/// Opens `source` and prints it again with its names, without names, and with its first program alone.
pub(crate) fn come_back(source: &str) -> Opened {
    let opened = open(source.as_bytes(), true, &Known::default()).unwrap();
    assert_eq!(opened.image.programs.len(), 2);
    assert_eq!(opened.image.programs[1].name.as_deref(), Some("pixel main"));
    assert_eq!(text(&opened.target, &opened.image), source);
    round_trip_image(&opened.target, &opened.image).unwrap();
    // Programs without names are also kept apart. A single program does not need a `.program` line.
    let mut nameless = opened.image.clone();
    nameless.programs.iter_mut().for_each(|program| program.name = None);
    let back = assemble(&opened.target, &text(&opened.target, &nameless)).unwrap().image;
    assert_eq!(back.programs, nameless.programs);
    nameless.programs.pop();
    assert!(!text(&opened.target, &nameless).contains(".program"));
    opened
}
