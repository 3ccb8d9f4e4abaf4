//! Tests of the screen.

use std::fs;
use std::path::Path;

use reconverge_board::Board;

use super::picture::{CURSOR_MOVE, CURSOR_PICTURE};
use super::*;
use crate::device::Device;
use crate::node::Node;

fn node(folder: Option<PathBuf>) -> Client<'static> {
    node_of("rv770", folder)
}

fn node_of(chip: &str, folder: Option<PathBuf>) -> Client<'static> {
    let board = Board::named(chip).unwrap();
    let device = Box::leak(Box::new(Device { execute: false, screen: folder, ..Device::new(board) }));
    Client::new(Box::leak(Box::new(Node::new(device, None).unwrap())), 1)
}

/// Sends a request to the node. The node stores its reply in the argument.
fn ask<T: Plain>(node: &Client<'_>, number: u8, argument: &mut T) -> Result<(), Errno> {
    let request =
        Request((3 << 30 | size_of::<T>() << 16 | usize::from(b'd') << 8 | usize::from(number)) as _);
    answer(node, -1, request, std::ptr::from_mut(argument).cast()).expect("a request of the screen")
}

fn address<T>(pointer: *const T) -> u64 {
    pointer.expose_provenance() as u64
}

/// Creates a dumb buffer and a framebuffer in this buffer. Returns the identifier of the framebuffer, and the buffer.
fn framebuffer(node: &Client<'_>, width: u32, height: u32) -> (u32, DumbCreate) {
    let mut dumb = DumbCreate { width, height, bits: 32, ..DumbCreate::default() };
    ask(node, MODE_CREATE_DUMB, &mut dumb).unwrap();
    let mut asked = ModeFramebuffer2 {
        width,
        height,
        format: u32::from_le_bytes(*b"XR24"),
        handles: [dumb.handle, 0, 0, 0],
        pitches: [dumb.pitch, 0, 0, 0],
        ..ModeFramebuffer2::default()
    };
    ask(node, MODE_ADDFB2, &mut asked).unwrap();
    (asked.framebuffer, dumb)
}

fn shown(node: &Client<'_>, framebuffer: u32) -> Result<(), Errno> {
    let connector = CONNECTOR;
    let (connectors, connector_count) = (address(&raw const connector), 1);
    let mut crtc = ModeCrtc { crtc: CRTC, connectors, connector_count, ..ModeCrtc::default() };
    (crtc.framebuffer, crtc.valid, crtc.mode) = (framebuffer, 1, MODES[0]);
    ask(node, MODE_SETCRTC, &mut crtc)
}

/// Requests lists as libdrm does: first the lengths, and then the contents.
#[test]
fn a_program_finds_a_screen() {
    let node = node(None);
    let mut asked = ModeResources::default();
    ask(&node, MODE_GETRESOURCES, &mut asked).unwrap();
    assert_eq!(
        [asked.crtc_count, asked.connector_count, asked.encoder_count, asked.framebuffer_count],
        [1, 1, 1, 0]
    );
    let mut id = [0_u32; 3];
    let [crtc, connector, encoder] = [0, 1, 2].map(|at: usize| address(&raw mut id[at]));
    (asked.crtcs, asked.connectors, asked.encoders) = (crtc, connector, encoder);
    ask(&node, MODE_GETRESOURCES, &mut asked).unwrap();
    let [crtc, connector, encoder] = id;
    let mut modes = [ModeInfo::default(); 3];
    let mut asked = ModeConnector {
        connector,
        mode_count: 3,
        modes: address(modes.as_mut_ptr()),
        ..ModeConnector::default()
    };
    ask(&node, MODE_GETCONNECTOR, &mut asked).unwrap();
    assert_eq!((asked.connection, asked.encoder, asked.mode_count), (CONNECTED, 0, 3));
    assert_eq!(
        (modes[0].horizontal[0], modes[0].vertical[0], &modes[0].name[..8]),
        (640, 480, &b"640x480\0"[..])
    );
    let mut asked = ModeEncoder { encoder, ..ModeEncoder::default() };
    ask(&node, MODE_GETENCODER, &mut asked).unwrap();
    assert_eq!((asked.crtcs, asked.crtc), (1, 0));
    assert_eq!(ask(&node, MODE_GETCRTC, &mut ModeCrtc { crtc, ..ModeCrtc::default() }), Ok(()));
    for unknown in [0, 77] {
        let error = Err(Errno(libc::ENOENT));
        assert_eq!(ask(&node, MODE_GETCRTC, &mut ModeCrtc { crtc: unknown, ..ModeCrtc::default() }), error);
        assert_eq!(ask(&node, MODE_GETENCODER, &mut ModeEncoder { encoder: unknown, ..asked }), error);
    }
}

#[test]
fn buffers_can_be_exported_and_imported() {
    let node = node(None);
    let mut prime = GetCap { capability: 5, ..GetCap::default() };
    ask(&node, GET_CAP, &mut prime).unwrap();
    assert_eq!(prime.value, 3);
}

#[test]
fn a_flip_shows_a_frame_and_notifies_once() {
    let folder = std::env::temp_dir().join(format!("reconverge-screen-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let node = node(Some(folder.clone()));
    let frames = [0x0011_2233_u32, 0x0044_5566].map(|color| {
        let (framebuffer, dumb) = framebuffer(&node, 700, 480);
        let mut map = DumbMap { handle: dumb.handle, ..DumbMap::default() };
        ask(&node, MODE_MAP_DUMB, &mut map).unwrap();
        let start = map.offset as usize;
        // This is the offset of the last pixel that is visible on the screen.
        let at = start + 479 * dumb.pitch as usize + 639 * 4;
        node.lock().memory.write(at, &color.to_le_bytes());
        framebuffer
    });
    let mut flip =
        PageFlip { crtc: CRTC, framebuffer: frames[1], flags: FLIP_EVENT, user: 9, ..PageFlip::default() };
    assert_eq!(ask(&node, MODE_PAGE_FLIP, &mut flip), Err(Errno(libc::EBUSY)), "nothing is shown yet");
    shown(&node, frames[0]).unwrap();
    ask(&node, MODE_PAGE_FLIP, &mut flip).unwrap();
    let events: Vec<_> = node.events().iter().map(|event| (event.kind, event.place[0], event.user)).collect();
    assert_eq!(events, [(FLIP_COMPLETE, 2, 9)]);
    assert_eq!(node.events().len(), 0);
    assert_eq!(node.lock().screen.pictures, 2);
    for (name, last) in [("frame-0001.ppm", [0x11, 0x22, 0x33]), ("frame-0002.ppm", [0x44, 0x55, 0x66])] {
        let picture = fs::read(folder.join(name)).unwrap();
        assert!(picture.starts_with(b"P6\n640 480\n255\n") && picture.ends_with(&last), "{name}");
        assert_eq!(picture.len(), 15 + 640 * 480 * 3);
    }
    fs::remove_dir_all(folder).unwrap();
}

/// Writes a picture to the folder of a screen. Returns the names of the files in this folder.
fn saved(screen: &mut Screen, picture: &[u8]) -> Vec<String> {
    screen.frames += 1;
    frames::save(screen, picture).unwrap();
    let folder = screen.folder.as_ref().unwrap();
    let names = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name());
    let mut names: Vec<String> = names.map(|name| name.into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn frames_of_a_second_process_have_names_of_their_own_and_links_are_replaced() {
    let folder = std::env::temp_dir().join(format!("reconverge-frames-{}", std::process::id()));
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    let victim = folder.join("victim");
    fs::write(&victim, "kept").unwrap();
    std::os::unix::fs::symlink(&victim, folder.join("frame-0001.ppm")).unwrap();
    let mut first = Screen::new(Some(folder.clone()));
    let mut second = Screen::new(Some(folder.clone()));
    assert_eq!(saved(&mut first, b"1"), ["frame-0001.ppm", "victim"]);
    assert_eq!(fs::read(&victim).unwrap(), b"kept");
    saved(&mut second, b"2");
    saved(&mut second, b"2");
    saved(&mut first, b"1");
    // From here on, the test treats the first process as a forked copy.
    first.copied();
    let names = saved(&mut first, b"3");
    let expected =
        ["frame-0001.ppm", "frame-0002.ppm", "frame-p2-0001.ppm", "frame-p2-0002.ppm", "frame-p3-0001.ppm"];
    assert_eq!(names[..5], expected);
    let contents = expected.map(|name| fs::read(folder.join(name)).unwrap());
    assert_eq!(contents, [b"1", b"1", b"2", b"2", b"3"]);
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn flips_that_nobody_handles_are_limited() {
    let node = node(None);
    let (framebuffer, _) = framebuffer(&node, 640, 480);
    shown(&node, framebuffer).unwrap();
    let mut flip = PageFlip { crtc: CRTC, framebuffer, flags: FLIP_EVENT, ..PageFlip::default() };
    for _ in 0..vblank::WAITING {
        ask(&node, MODE_PAGE_FLIP, &mut flip).unwrap();
    }
    assert_eq!(ask(&node, MODE_PAGE_FLIP, &mut flip), Err(Errno(libc::ENOMEM)));
    assert_eq!(node.events().len(), vblank::WAITING);
    assert_eq!(ask(&node, MODE_PAGE_FLIP, &mut flip), Ok(()));
}

#[test]
fn a_framebuffer_is_shown_after_its_handle_is_closed() {
    let folder = std::env::temp_dir().join(format!("reconverge-screen-closed-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let node = node(Some(folder.clone()));
    let (framebuffer, dumb) = framebuffer(&node, 640, 480);
    let mut map = DumbMap { handle: dumb.handle, ..DumbMap::default() };
    ask(&node, MODE_MAP_DUMB, &mut map).unwrap();
    node.lock().memory.write(map.offset as usize, &0x0011_2233_u32.to_le_bytes());
    ask(&node, MODE_DESTROY_DUMB, &mut DumbDestroy { handle: dumb.handle }).unwrap();
    shown(&node, framebuffer).unwrap();
    let picture = fs::read(folder.join("frame-0001.ppm")).unwrap();
    assert_eq!(picture[15..18], [0x11, 0x22, 0x33]);
    ask(&node, MODE_RMFB, &mut ModeFramebufferId { framebuffer }).unwrap();
    assert_eq!(
        node.lock().buffers.used(u32::MAX),
        0,
        "the framebuffer held the last reference to the buffer"
    );
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn what_cannot_be_shown_is_an_error() {
    let node = node(None);
    let (small, dumb) = framebuffer(&node, 64, 64);
    assert_eq!(shown(&node, small), Err(Errno(libc::ENOSPC)));
    assert_eq!(shown(&node, 77), Err(Errno(libc::ENOENT)));
    ask(&node, MODE_RMFB, &mut ModeFramebufferId { framebuffer: small }).unwrap();
    assert_eq!(shown(&node, small), Err(Errno(libc::ENOENT)));
    let asked = ModeFramebuffer2 {
        width: 64,
        height: 64,
        format: u32::from_le_bytes(*b"XR24"),
        handles: [dumb.handle, 0, 0, 0],
        pitches: [dumb.pitch, 0, 0, 0],
        ..ModeFramebuffer2::default()
    };
    // 64 rows of 256 bytes are 16 KiB. The size of the buffer is rounded up to 64 KiB. The following framebuffers are
    // invalid or do not fit in the buffer.
    for (width, height, pitch, offset) in [
        (0, 64, 256, 0),
        (65, 64, 256, 0),
        (64, 8192, 256, 0),
        (64, 64, u32::MAX, 0),
        (64, 64, 256, u32::MAX),
    ] {
        let mut asked = ModeFramebuffer2 { width, height, ..asked };
        (asked.pitches[0], asked.offsets[0]) = (pitch, offset);
        assert_eq!(
            ask(&node, MODE_ADDFB2, &mut asked),
            Err(Errno(libc::EINVAL)),
            "{width} {height} {pitch} {offset}"
        );
    }
    let mut asked = ModeFramebuffer2 { format: u32::from_le_bytes(*b"NV12"), ..asked };
    assert_eq!(ask(&node, MODE_ADDFB2, &mut asked), Err(Errno(libc::EINVAL)));
    assert_eq!(node.lock().unanswered.keys().collect::<Vec<_>>(), ["a framebuffer of NV12"]);
}

#[test]
fn colors_are_taken_from_the_bytes_of_a_format() {
    let of = |code: &[u8; 4], bytes: &[u8]| Pixels::of_code(u32::from_le_bytes(*code)).unwrap().color(bytes);
    assert_eq!(of(b"XR24", &[3, 2, 1, 0]), [1, 2, 3]);
    assert_eq!(of(b"AB24", &[1, 2, 3, 0]), [1, 2, 3]);
    assert_eq!(of(b"RG16", &0xf81f_u16.to_le_bytes()), [255, 0, 255]);
}

/// Requests properties as libdrm does: first the number of properties, and then the lists.
fn properties(node: &Client<'_>, object: u32) -> Result<Vec<(String, u64)>, Errno> {
    let mut asked = ModeObjectProperties { object, ..ModeObjectProperties::default() };
    ask(node, MODE_OBJ_GETPROPERTIES, &mut asked)?;
    let (mut ids, mut values) = (vec![0_u32; asked.count as usize], vec![0_u64; asked.count as usize]);
    (asked.properties, asked.values) = (address(ids.as_mut_ptr()), address(values.as_mut_ptr()));
    ask(node, MODE_OBJ_GETPROPERTIES, &mut asked)?;
    let name = |id: u32| {
        let mut asked = ModeProperty { property: id, ..ModeProperty::default() };
        ask(node, MODE_GETPROPERTY, &mut asked).unwrap();
        String::from_utf8(asked.name.into()).unwrap().trim_end_matches('\0').to_owned()
    };
    Ok(ids.into_iter().map(name).zip(values).collect())
}

/// The expected results are the results of the kernel's `drm_mode_object.c` and `drm_plane.c`.
#[test]
fn objects_have_the_properties_of_a_driver_without_atomic_requests() {
    let node = node(None);
    let names = |object| properties(&node, object).map(|all| all.into_iter().map(|(name, _)| name).collect());
    assert_eq!(names(CRTC), Ok(vec![]));
    assert_eq!(
        names(CONNECTOR),
        Ok(["EDID", "DPMS", "link-status", "non-desktop"].map(str::to_owned).into())
    );
    assert_eq!(properties(&node, PLANE), Ok(vec![("type".to_owned(), 1)]));
    assert_eq!(names(ENCODER), Err(Errno(libc::EINVAL)));
    assert_eq!(names(77), Err(Errno(libc::ENOENT)));
    let mut atomic = ClientCap { capability: ATOMIC, value: 1 };
    assert_eq!(ask(&node, SET_CLIENT_CAP, &mut atomic), Err(Errno(libc::EOPNOTSUPP)));
    let mut planes = ModePlanes::default();
    ask(&node, MODE_GETPLANERESOURCES, &mut planes).unwrap();
    assert_eq!(planes.count, 0, "the program has not set the capability");
    ask(&node, SET_CLIENT_CAP, &mut ClientCap { capability: UNIVERSAL_PLANES, value: 1 }).unwrap();
    ask(&node, MODE_GETPLANERESOURCES, &mut planes).unwrap();
    assert_eq!(planes.count, 1);
}

#[test]
fn the_monitor_is_described_by_the_data_of_a_property() {
    let node = node(None);
    let (_, blob) = properties(&node, CONNECTOR).unwrap().swap_remove(0);
    let mut asked = ModeBlob { blob: blob as u32, ..ModeBlob::default() };
    ask(&node, MODE_GETPROPBLOB, &mut asked).unwrap();
    let mut data = vec![0_u8; asked.length as usize];
    asked.data = address(data.as_mut_ptr());
    ask(&node, MODE_GETPROPBLOB, &mut asked).unwrap();
    assert_eq!(data, modes::edid());
    let own = [1_u8, 2, 3];
    let mut made = ModeNewBlob { data: address(own.as_ptr()), length: 3, blob: 0 };
    ask(&node, MODE_CREATEPROPBLOB, &mut made).unwrap();
    let mut asked = ModeBlob { blob: made.blob, length: 3, data: address(data.as_mut_ptr()) };
    ask(&node, MODE_GETPROPBLOB, &mut asked).unwrap();
    assert_eq!(data[..3], own);
    ask(&node, MODE_DESTROYPROPBLOB, &mut ModeBlobId { blob: made.blob }).unwrap();
    assert_eq!(ask(&node, MODE_GETPROPBLOB, &mut asked), Err(Errno(libc::ENOENT)));
    for length in [0, u32::MAX] {
        let mut made = ModeNewBlob { length, ..made };
        assert_eq!(ask(&node, MODE_CREATEPROPBLOB, &mut made), Err(Errno(libc::EINVAL)));
    }
}

/// The requests set a fixed property, and set values that a property does not have.
#[test]
fn only_power_and_link_can_be_set() {
    let node = node(None);
    let set = |property, value| {
        let mut asked = ModeConnectorProperty { value, property, connector: CONNECTOR };
        ask(&node, MODE_SETPROPERTY, &mut asked)
    };
    assert_eq!((set(17, 3), set(18, 0)), (Ok(()), Ok(())));
    assert_eq!(
        (set(17, 4), set(16, 0), set(19, 0)),
        (Err(Errno(libc::EINVAL)), Err(Errno(libc::EINVAL)), Err(Errno(libc::EINVAL)))
    );
    assert_eq!(set(20, 1), Err(Errno(libc::ENOENT)), "a property of the plane");
    let dpms = properties(&node, CONNECTOR).unwrap().swap_remove(1);
    assert_eq!(dpms, ("DPMS".to_owned(), 3));
}

/// Creates a node that shows a framebuffer of one colour. Returns the node, the framebuffer, and the folder of the
/// frame files.
fn colored(name: &str, color: u32) -> (Client<'static>, u32, PathBuf) {
    let folder = std::env::temp_dir().join(format!("reconverge-{name}-{}", std::process::id()));
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    let node = node(Some(folder.clone()));
    let (framebuffer, dumb) = framebuffer(&node, 640, 480);
    let mut map = DumbMap { handle: dumb.handle, ..DumbMap::default() };
    ask(&node, MODE_MAP_DUMB, &mut map).unwrap();
    let pixels = color.to_le_bytes().repeat(640 * 480);
    node.lock().memory.write(map.offset as usize, &pixels);
    shown(&node, framebuffer).unwrap();
    (node, framebuffer, folder)
}

/// Reports to the node that a framebuffer has changed. Returns a pixel of the frame that the node then shows.
fn changed(node: &Client<'_>, framebuffer: u32, frame: &Path, place: [usize; 2]) -> [u8; 3] {
    ask(node, MODE_DIRTYFB, &mut ModeDirty { framebuffer, ..ModeDirty::default() }).unwrap();
    pixel(frame, place)
}

/// Returns a pixel of a frame file.
fn pixel(frame: &Path, [x, y]: [usize; 2]) -> [u8; 3] {
    let picture = fs::read(frame).unwrap();
    let at = 15 + 3 * (y * 640 + x);
    [picture[at], picture[at + 1], picture[at + 2]]
}

/// The colours of the cursor are premultiplied by alpha. The picture below the cursor is multiplied by 1 - alpha.
#[test]
fn the_cursor_lies_above_the_framebuffer_and_moves() {
    let (node, framebuffer, folder) = colored("cursor", 0x0040_4040);
    let mut dumb = DumbCreate { width: 64, height: 64, bits: 32, ..DumbCreate::default() };
    ask(&node, MODE_CREATE_DUMB, &mut dumb).unwrap();
    let mut map = DumbMap { handle: dumb.handle, ..DumbMap::default() };
    ask(&node, MODE_MAP_DUMB, &mut map).unwrap();
    node.lock().memory.write(map.offset as usize, &0x8020_0000_u32.to_le_bytes().repeat(64 * 64));
    let mut cursor = ModeCursor {
        flags: CURSOR_PICTURE | CURSOR_MOVE,
        crtc: CRTC,
        place: [-60_i32 as u32, 470],
        size: [64, 64],
        handle: dumb.handle,
    };
    ask(&node, MODE_CURSOR, &mut cursor).unwrap();
    let frame = |number: u32| folder.join(format!("frame-{number:04}.ppm"));
    let pixel = |number, place| pixel(&frame(number), place);
    assert_eq!((pixel(2, [3, 470]), pixel(2, [4, 470])), ([0x40, 0x20, 0x20], [0x40; 3]));
    // The cursor holds a reference to its buffer, so the program may close the handle.
    ask(&node, MODE_DESTROY_DUMB, &mut DumbDestroy { handle: dumb.handle }).unwrap();
    let mut moved = ModeCursor2 { flags: CURSOR_MOVE, crtc: CRTC, place: [4, 470], ..ModeCursor2::default() };
    ask(&node, MODE_CURSOR2, &mut moved).unwrap();
    assert_eq!(pixel(3, [4, 470]), [0x40, 0x20, 0x20]);
    ask(&node, MODE_CURSOR2, &mut moved).unwrap();
    assert_eq!(node.lock().screen.frames, 3, "nothing has moved");
    for x in [640, 641] {
        moved.place = [x, 0];
        ask(&node, MODE_CURSOR2, &mut moved).unwrap();
    }
    assert_eq!(
        node.lock().screen.frames,
        4,
        "only the first move changes the screen: the cursor is off the screen after both moves"
    );
    let mut none = ModeCursor { flags: CURSOR_PICTURE, crtc: CRTC, ..ModeCursor::default() };
    ask(&node, MODE_CURSOR, &mut none).unwrap();
    moved.place = [4, 470];
    ask(&node, MODE_CURSOR2, &mut moved).unwrap();
    assert_eq!(node.lock().screen.frames, 4, "there is no cursor to move");
    assert_eq!(changed(&node, framebuffer, &frame(5), [4, 470]), [0x40; 3]);
    for wrong in [ModeCursor { flags: 0, ..cursor }, ModeCursor { flags: 4, ..cursor }] {
        assert_eq!(ask(&node, MODE_CURSOR, &mut wrong.clone()), Err(Errno(libc::EINVAL)));
    }
    assert_eq!(ask(&node, MODE_CURSOR, &mut cursor), Err(Errno(libc::ENOENT)), "its handle is closed");
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn the_gamma_table_and_the_power_change_the_picture() {
    let (node, framebuffer, folder) = colored("gamma", 0x0010_2030);
    let frame = |number: u32| folder.join(format!("frame-{number:04}.ppm"));
    let inverted: Vec<u16> = (0..256).map(|value| (255 - value) * 0x101).collect();
    let tables = [address(inverted.as_ptr()); 3];
    for _ in 0..2 {
        ask(&node, MODE_SETGAMMA, &mut ModeGamma { crtc: CRTC, size: 256, tables }).unwrap();
        assert_eq!(node.lock().screen.frames, 2, "the same table changes nothing");
    }
    assert_eq!(pixel(&frame(2), [0, 0]), [0xef, 0xdf, 0xcf]);
    let mut table = vec![0_u16; 256];
    let tables = [address(table.as_mut_ptr()); 3];
    ask(&node, MODE_GETGAMMA, &mut ModeGamma { crtc: CRTC, size: 256, tables }).unwrap();
    assert_eq!(table, inverted);
    assert_eq!(
        ask(&node, MODE_SETGAMMA, &mut ModeGamma { crtc: CRTC, size: 255, tables }),
        Err(Errno(libc::EINVAL))
    );
    let power = |value| {
        let mut power = ModeConnectorProperty { value, property: 17, connector: CONNECTOR };
        ask(&node, MODE_SETPROPERTY, &mut power).unwrap();
        node.lock().screen.frames
    };
    assert_eq!([power(0), power(3), power(3), power(1)], [2, 3, 3, 3], "only a change is seen");
    assert_eq!(pixel(&frame(3), [0, 0]), [0; 3]);
    assert_eq!(power(0), 4);
    assert_eq!(pixel(&frame(4), [0, 0]), [0xef, 0xdf, 0xcf]);
    // Setting a mode switches the power on.
    assert_eq!(power(3), 5);
    shown(&node, framebuffer).unwrap();
    assert_eq!(pixel(&frame(6), [0, 0]), [0xef, 0xdf, 0xcf]);
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_screen_that_is_switched_off_or_loses_its_framebuffer_is_black() {
    let (node, framebuffer, folder) = colored("off", 0x0010_2030);
    let frame = |number: u32| folder.join(format!("frame-{number:04}.ppm"));
    let mut off = ModeCrtc { crtc: CRTC, ..ModeCrtc::default() };
    ask(&node, MODE_SETCRTC, &mut off).unwrap();
    assert_eq!(pixel(&frame(2), [639, 479]), [0; 3]);
    ask(&node, MODE_SETCRTC, &mut off).unwrap();
    assert_eq!(node.lock().screen.frames, 2, "it is off");
    shown(&node, framebuffer).unwrap();
    assert_eq!(pixel(&frame(3), [639, 479]), [0x10, 0x20, 0x30]);
    ask(&node, MODE_RMFB, &mut ModeFramebufferId { framebuffer }).unwrap();
    assert_eq!(pixel(&frame(4), [639, 479]), [0; 3]);
    let mut crtc = ModeCrtc { crtc: CRTC, ..ModeCrtc::default() };
    ask(&node, MODE_GETCRTC, &mut crtc).unwrap();
    assert_eq!((crtc.valid, node.lock().screen.frames), (0, 4));
    fs::remove_dir_all(folder).unwrap();
}

/// The expected results are the results of the kernel's `drm_mode_closefb_ioctl`.
#[test]
fn a_closed_framebuffer_stays_on_the_screen_and_ends_when_it_leaves() {
    let node = node(None);
    let (first, dumb) = framebuffer(&node, 640, 480);
    shown(&node, first).unwrap();
    ask(&node, MODE_DESTROY_DUMB, &mut DumbDestroy { handle: dumb.handle }).unwrap();
    let close = |framebuffer, padding, file| {
        let node = node.as_file(file);
        ask(&node, MODE_CLOSEFB, &mut ModeCloseFramebuffer { framebuffer, padding })
    };
    assert_eq!(close(first, 1, 1), Err(Errno(libc::EINVAL)));
    assert_eq!(close(first, 0, 2), Err(Errno(libc::ENOENT)), "the framebuffer belongs to another open file");
    assert_eq!(close(first, 0, 1), Ok(()));
    assert_eq!(close(first, 0, 1), Err(Errno(libc::ENOENT)), "the framebuffer is closed");
    let listed = || {
        let mut asked = ModeResources::default();
        ask(&node, MODE_GETRESOURCES, &mut asked).unwrap();
        asked.framebuffer_count
    };
    let crtc = || {
        let mut crtc = ModeCrtc { crtc: CRTC, ..ModeCrtc::default() };
        ask(&node, MODE_GETCRTC, &mut crtc).unwrap();
        crtc.framebuffer
    };
    assert_eq!((listed(), crtc()), (0, first));
    assert_eq!(node.lock().screen.end(FileId(1)), [], "the framebuffer does not end with its open file");
    let (second, dumb) = framebuffer(&node, 640, 480);
    ask(&node, MODE_PAGE_FLIP, &mut PageFlip { crtc: CRTC, framebuffer: second, ..PageFlip::default() })
        .unwrap();
    assert_eq!(node.lock().screen.framebuffers.keys().copied().collect::<Vec<_>>(), [second]);
    assert_eq!(close(second, 0, 1), Ok(()));
    ask(&node, MODE_DESTROY_DUMB, &mut DumbDestroy { handle: dumb.handle }).unwrap();
    assert_ne!(node.lock().buffers.used(u32::MAX), 0);
    ask(&node, MODE_SETCRTC, &mut ModeCrtc { crtc: CRTC, ..ModeCrtc::default() }).unwrap();
    assert_eq!(node.lock().buffers.used(u32::MAX), 0, "the buffers end with their framebuffers");
}

/// The expected errors are the errors of the kernel's `drm_mode_setcrtc` and `drm_mode_validate_basic`.
#[test]
fn a_mode_that_no_screen_has_and_a_screen_without_framebuffer_are_errors() {
    let node = node(None);
    let (framebuffer, _) = framebuffer(&node, 640, 480);
    let connector = CONNECTOR;
    let set = |framebuffer, valid, mode, count: u32| {
        let mut crtc =
            ModeCrtc { crtc: CRTC, connectors: address(&raw const connector), ..ModeCrtc::default() };
        (crtc.framebuffer, crtc.valid, crtc.mode, crtc.connector_count) = (framebuffer, valid, mode, count);
        ask(&node, MODE_SETCRTC, &mut crtc)
    };
    let invalid = Err(Errno(libc::EINVAL));
    assert_eq!(set(framebuffer, 1, ModeInfo::default(), 1), invalid);
    for wrong in [
        ModeInfo { clock: 0, ..MODES[0] },
        ModeInfo { horizontal: [0, 656, 752, 800, 0], ..MODES[0] },
        ModeInfo { horizontal: [640, 639, 752, 800, 0], ..MODES[0] },
        ModeInfo { vertical: [480, 490, 489, 525, 0], ..MODES[0] },
        ModeInfo { vertical: [480, 490, 492, 491, 0], ..MODES[0] },
    ] {
        assert_eq!(set(framebuffer, 1, wrong, 1), invalid, "{wrong:?}");
    }
    assert_eq!(set(framebuffer, 1, MODES[1], 1), Err(Errno(libc::ENOSPC)));
    assert_eq!(set(UNCHANGED, 1, MODES[0], 1), invalid, "nothing is shown");
    assert_eq!(set(framebuffer, 1, MODES[0], 0), invalid);
    assert_eq!(set(0, 0, ModeInfo::default(), 1), invalid, "off, with a connector");
    assert_eq!(set(framebuffer, 1, MODES[0], 1), Ok(()));
    assert_eq!(set(UNCHANGED, 1, MODES[0], 1), Ok(()));
}

/// The expected results are the results of the kernel's `drm_mode_page_flip_ioctl` and
/// `drm_internal_framebuffer_create`.
#[test]
fn a_flip_keeps_the_format_and_framebuffers_have_no_modifiers() {
    let node = node(None);
    let (framebuffer, dumb) = framebuffer(&node, 640, 480);
    let made = |code: &[u8; 4], flags, modifier, unused| {
        let mut asked = ModeFramebuffer2 {
            width: 640,
            height: 480,
            format: u32::from_le_bytes(*code),
            flags,
            handles: [dumb.handle, unused, 0, 0],
            pitches: [dumb.pitch, unused, 0, 0],
            modifiers: [0, modifier, 0, 0],
            ..ModeFramebuffer2::default()
        };
        ask(&node, MODE_ADDFB2, &mut asked).map(|()| asked.framebuffer)
    };
    let invalid = Err(Errno(libc::EINVAL));
    assert_eq!((made(b"XR24", 2, 0, 0), made(b"XR24", 0xff00, 0, 0)), (invalid, invalid));
    assert_eq!(made(b"XR24", 0, 1, 0), invalid);
    assert!(made(b"XR24", 1, 0, 0).is_ok(), "two fields");
    assert!(made(b"XR24", 0, 0, 99).is_ok(), "old programs do not clear the unused planes");
    shown(&node, framebuffer).unwrap();
    let flipped = |framebuffer, padding| {
        let mut flip = PageFlip { crtc: CRTC, framebuffer, padding, ..PageFlip::default() };
        ask(&node, MODE_PAGE_FLIP, &mut flip)
    };
    assert_eq!(flipped(made(b"RG16", 0, 0, 0).unwrap(), 0), Err(Errno(libc::EINVAL)));
    assert_eq!(flipped(made(b"AR24", 0, 0, 0).unwrap(), 0), Err(Errno(libc::EINVAL)));
    assert_eq!(flipped(framebuffer, 7), Err(Errno(libc::EINVAL)));
    assert_eq!(flipped(framebuffer, 0), Ok(()));
}

/// The expected results are the results of the kernel's `drm_mode_getresources`, `drm_mode_object_get_properties`,
/// `drm_mode_getconnector` and `drm_mode_getplane`.
#[test]
fn lists_are_given_in_part_where_the_kernel_does_so() {
    let node = node(None);
    let (first, _) = framebuffer(&node, 640, 480);
    framebuffer(&node, 640, 480);
    let mut ids = [0_u32; 4];
    let framebuffers = address(ids.as_mut_ptr());
    let mut asked = ModeResources { framebuffers, framebuffer_count: 1, ..ModeResources::default() };
    ask(&node, MODE_GETRESOURCES, &mut asked).unwrap();
    assert_eq!((asked.framebuffer_count, ids), (2, [first, 0, 0, 0]));
    let mut nowhere = ModeResources { crtc_count: 1, ..ModeResources::default() };
    assert_eq!(ask(&node, MODE_GETRESOURCES, &mut nowhere), Err(Errno(libc::EFAULT)));
    let mut values = [9_u64; 4];
    let (properties, values_at) = (address(ids.as_mut_ptr()), address(values.as_mut_ptr()));
    let mut asked = ModeObjectProperties { properties, values: values_at, count: 2, ..Default::default() };
    asked.object = CONNECTOR;
    ask(&node, MODE_OBJ_GETPROPERTIES, &mut asked).unwrap();
    assert_eq!((asked.count, ids, values), (4, [16, 17, 0, 0], [31, 0, 9, 9]));
    let mut modes = [ModeInfo::default(); 3];
    let mut asked = ModeConnector { connector: CONNECTOR, mode_count: 2, ..ModeConnector::default() };
    asked.modes = address(modes.as_mut_ptr());
    ask(&node, MODE_GETCONNECTOR, &mut asked).unwrap();
    assert_eq!((asked.mode_count, modes[0].clock), (3, 0), "all modes or none");
    let mut asked = ModePlane { plane: PLANE, format_count: 5, ..ModePlane::default() };
    assert_eq!(ask(&node, MODE_GETPLANE, &mut asked), Err(Errno(libc::EFAULT)));
    asked.format_count = 4;
    assert_eq!((ask(&node, MODE_GETPLANE, &mut asked), asked.format_count), (Ok(()), 5));
}

/// On a Radeon, the expected error is the error of the kernel's `drm_plane_helper.c`. On a GeForce, the driver only
/// switches the plane off.
#[test]
fn a_screen_without_a_plane_keeps_its_size() {
    for (chip, answer) in [("rv770", Err(Errno(libc::EINVAL))), ("gt215", Ok(()))] {
        let node = node_of(chip, None);
        let (framebuffer, _) = framebuffer(&node, 640, 480);
        shown(&node, framebuffer).unwrap();
        let mut none = ModeSetPlane { plane: PLANE, ..ModeSetPlane::default() };
        assert_eq!(ask(&node, MODE_SETPLANE, &mut none), answer, "{chip}");
        let mut crtc = ModeCrtc { crtc: CRTC, ..ModeCrtc::default() };
        ask(&node, MODE_GETCRTC, &mut crtc).unwrap();
        assert_eq!((crtc.valid, crtc.mode.clock), (1, MODES[0].clock), "{chip}");
        assert_eq!(crtc.framebuffer == 0, answer.is_ok(), "{chip}");
        let mut flip = PageFlip { crtc: CRTC, framebuffer, ..PageFlip::default() };
        let flipped = if answer.is_ok() { Err(Errno(libc::EBUSY)) } else { Ok(()) };
        assert_eq!(ask(&node, MODE_PAGE_FLIP, &mut flip), flipped, "{chip}");
        let mut whole = ModeSetPlane { crtc: CRTC, framebuffer, size: [640, 480], ..none };
        (whole.from_width, whole.from_height) = (640 << 16, 480 << 16);
        assert_eq!(ask(&node, MODE_SETPLANE, &mut whole), Ok(()), "{chip}");
    }
}

/// The expected results are the results of the kernel's `drm_setversion`, `drm_getcap` and `drm_setclientcap`.
#[test]
fn versions_and_abilities_are_checked() {
    for (chip, [major, minor]) in [("rv770", [2, 50]), ("gt215", [1, 3])] {
        let node = node_of(chip, None);
        let set = |interface, driver| {
            let mut version = SetVersion { interface, driver };
            let answer = ask(&node, SET_VERSION, &mut version);
            assert_eq!((version.interface, version.driver), ([1, 4], [major, minor]), "{chip}");
            answer
        };
        assert_eq!(set([-1, -1], [-1, -1]), Ok(()));
        assert_eq!(set([1, 1], [major, minor]), Ok(()));
        for (interface, driver) in [
            ([0, 0], [-1, -1]),
            ([1, 5], [-1, -1]),
            ([1, -1], [-1, -1]),
            ([1, 1], [77, 0]),
            ([1, 1], [major, minor + 1]),
        ] {
            assert_eq!(set(interface, driver), Err(Errno(libc::EINVAL)), "{interface:?} {driver:?}");
        }
    }
    let node = node(None);
    let mut cap = GetCap { capability: 0x7777, value: 5 };
    assert_eq!((ask(&node, GET_CAP, &mut cap), cap.value), (Err(Errno(libc::EINVAL)), 0));
    let mut cap = GetCap { capability: 0x10, value: 5 };
    assert_eq!((ask(&node, GET_CAP, &mut cap), cap.value), (Ok(()), 0), "no modifiers");
    let client = |capability, value| ask(&node, SET_CLIENT_CAP, &mut ClientCap { capability, value });
    assert_eq!(
        (client(STEREO_3D, 1), client(ASPECT_RATIO, 1), client(ASPECT_RATIO, 0)),
        (Ok(()), Ok(()), Ok(()))
    );
    assert_eq!((client(STEREO_3D, 2), client(5, 1)), (Err(Errno(libc::EINVAL)), Err(Errno(libc::EINVAL))));
}

/// The kernel's `drm_property_create_blob` and `drm_mode_create_dumb` do not limit the size themselves.
#[test]
fn large_data_and_wide_buffers_are_accepted() {
    let node = node(None);
    let data = vec![7_u8; 100_000];
    let mut made = ModeNewBlob { data: address(data.as_ptr()), length: 100_000, blob: 0 };
    assert_eq!(ask(&node, MODE_CREATEPROPBLOB, &mut made), Ok(()));
    made.length = i32::MAX as u32;
    assert_eq!(ask(&node, MODE_CREATEPROPBLOB, &mut made), Err(Errno(libc::ENOMEM)));
    let dumb = |width, height, bits| {
        let mut dumb = DumbCreate { width, height, bits, ..DumbCreate::default() };
        ask(&node, MODE_CREATE_DUMB, &mut dumb).map(|()| (dumb.pitch, dumb.size))
    };
    assert_eq!(dumb(9000, 1, 32), Ok((36_096, 36_096)));
    assert_eq!(dumb(2, 2, 64), Ok((256, 512)));
    for (width, height, bits) in [
        (0, 1, 32),
        (1, 0, 32),
        (1, 1, 0),
        (1, 1, u32::MAX),
        (1 << 30, 1, 32),
        (1 << 15, 1 << 15, 32),
        ((1 << 30) - 1, 1, 32),
    ] {
        assert_eq!(dumb(width, height, bits), Err(Errno(libc::EINVAL)), "{width} {height} {bits}");
    }
}

/// The expected results are the results of the kernel's `drm_wait_vblank_ioctl`. The kernel waits for a refresh of the
/// screen, but this node does not wait.
#[test]
fn a_wait_moves_the_count_of_frames() {
    let node = node(None);
    let mut wait = WaitVblank { kind: 1, sequence: 2, ..WaitVblank::default() };
    assert_eq!(ask(&node, WAIT_VBLANK, &mut wait), Err(Errno(libc::EINVAL)), "the screen is off");
    let (framebuffer, _) = framebuffer(&node, 640, 480);
    shown(&node, framebuffer).unwrap();
    ask(&node, WAIT_VBLANK, &mut wait).unwrap();
    assert_eq!((wait.sequence, wait.user, wait.micros), (3, 0, 50_000));
    // The first and the last sequence number have passed, so only the second sequence number advances the count.
    for (sequence, count) in [(1, 3), (7, 7), (u32::MAX, 7)] {
        let mut wait = WaitVblank { sequence, ..WaitVblank::default() };
        ask(&node, WAIT_VBLANK, &mut wait).unwrap();
        assert_eq!(wait.sequence, count);
    }
    let mut wait = WaitVblank { kind: 1 << 26, sequence: 9, user: 5, ..WaitVblank::default() };
    ask(&node, WAIT_VBLANK, &mut wait).unwrap();
    let mut queued = QueueSequence { crtc: CRTC, flags: 1, sequence: 1, user: 6 };
    ask(&node, CRTC_QUEUE_SEQUENCE, &mut queued).unwrap();
    let events = node.events();
    assert_eq!(events.iter().map(|event| (event.kind, event.user)).collect::<Vec<_>>(), [(1, 5), (3, 6)]);
    assert_eq!((events[0].place, vblank::whole(events[1].place)), ([9, CRTC], 10));
    let mut count = CrtcSequence { crtc: CRTC, ..CrtcSequence::default() };
    ask(&node, CRTC_GET_SEQUENCE, &mut count).unwrap();
    assert_eq!((count.active, count.sequence, count.nanos), (1, 10, 10 * 1_000_000_000 / 60));
    let mut far = QueueSequence { sequence: 1 << 40, ..queued };
    assert_eq!(ask(&node, CRTC_QUEUE_SEQUENCE, &mut far), Err(Errno(libc::EINVAL)));
}

/// As in the kernel's `drm_vblank_passed`, counts wrap. `WAIT_VBLANK` compares the lower 32 bits of a count.
#[test]
fn waits_go_on_where_a_count_has_more_than_32_bits_and_where_it_wraps() {
    let node = node(None);
    let (framebuffer, _) = framebuffer(&node, 640, 480);
    shown(&node, framebuffer).unwrap();
    for start in [(1 << 33) - 1, u64::MAX - 1] {
        node.lock().screen.count = start - 1;
        let mut queued = QueueSequence { crtc: CRTC, sequence: start, ..QueueSequence::default() };
        ask(&node, CRTC_QUEUE_SEQUENCE, &mut queued).unwrap();
        let mut flip = PageFlip { crtc: CRTC, framebuffer, ..PageFlip::default() };
        ask(&node, MODE_PAGE_FLIP, &mut flip).unwrap();
        let mut next = WaitVblank { kind: 1, sequence: 1, ..WaitVblank::default() };
        ask(&node, WAIT_VBLANK, &mut next).unwrap();
        assert_eq!(next.sequence, start.wrapping_add(2) as u32);
        let mut over = WaitVblank { sequence: start as u32, ..WaitVblank::default() };
        ask(&node, WAIT_VBLANK, &mut over).unwrap();
        assert_eq!(node.lock().screen.count, start.wrapping_add(2), "it is over");
    }
}

#[test]
fn a_framebuffer_is_handed_out_and_shown_from_a_place_in_it() {
    let folder = std::env::temp_dir().join(format!("reconverge-place-{}", std::process::id()));
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    let node = node(Some(folder.clone()));
    let (framebuffer, dumb) = framebuffer(&node, 700, 500);
    let mut asked = ModeFramebuffer { framebuffer, ..ModeFramebuffer::default() };
    ask(&node, MODE_GETFB, &mut asked).unwrap();
    assert_eq!((asked.width, asked.pitch, asked.bits, asked.depth), (700, dumb.pitch, 32, 24));
    assert_ne!(asked.handle, dumb.handle);
    let mut map = DumbMap { handle: asked.handle, ..DumbMap::default() };
    ask(&node, MODE_MAP_DUMB, &mut map).unwrap();
    let at = map.offset as usize + 20 * dumb.pitch as usize + 10 * 4;
    node.lock().memory.write(at, &0x0012_3456_u32.to_le_bytes());
    shown(&node, framebuffer).unwrap();
    let mut plane = ModeSetPlane {
        plane: PLANE,
        crtc: CRTC,
        framebuffer,
        size: [640, 480],
        from: [10 << 16, 20 << 16],
        from_height: 480 << 16,
        from_width: 640 << 16,
        ..ModeSetPlane::default()
    };
    ask(&node, MODE_SETPLANE, &mut plane).unwrap();
    let picture = fs::read(folder.join("frame-0002.ppm")).unwrap();
    assert_eq!(picture[15..18], [0x12, 0x34, 0x56]);
    let mut scaled = ModeSetPlane { from_width: 320 << 16, ..plane };
    assert_eq!(ask(&node, MODE_SETPLANE, &mut scaled), Err(Errno(libc::EINVAL)));
    let mut outside = ModeSetPlane { from: [61 << 16, 0], ..plane };
    assert_eq!(ask(&node, MODE_SETPLANE, &mut outside), Err(Errno(libc::ENOSPC)));
    fs::remove_dir_all(folder).unwrap();
}
