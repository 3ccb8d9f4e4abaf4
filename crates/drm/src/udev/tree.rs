//! The emulated devices that this library's libudev functions report: the board, the two nodes of the board, and the
//! input devices.
//!
//! ```text
//! /sys/devices/pci0000:01/0000:01:00.0             the board
//!                         |-- drm/card0            /dev/dri/card0
//!                         `-- drm/renderD128       /dev/dri/renderD128
//! /sys/devices/virtual/input/input0/event0         the keyboard, /dev/input/event0
//!                            input1/event1         the pointer, /dev/input/event1
//! ```
//!
//! Sources of the attributes: the kernel's `drivers/pci/pci-sysfs.c` and `drivers/input/input.c`. Sources of the
//! properties: systemd's rules `60-input-id.rules` and `71-seat.rules`, and systemd's `udev-builtin-input_id.c`. The
//! files in `/sys` do not exist.

use std::ffi::{CStr, CString, c_char};
use std::ptr::null;

use crate::device::Device;
use crate::input::{self, InputDevice};
use crate::paths::{self, CARD, CARD_NUMBER, NUMBER, PATH};

/// An entry of a list that libudev returns. The strings of the entry exist as long as the list exists.
#[derive(Debug)]
pub struct UdevList {
    next: *const UdevList,
    name: *const c_char,
    value: *const c_char,
}

impl UdevList {
    pub(super) fn next(&self) -> *const UdevList {
        self.next
    }

    pub(super) fn name(&self) -> &CStr {
        // SAFETY: `name` is a C string that exists as long as the list.
        unsafe { CStr::from_ptr(self.name) }
    }

    pub(super) fn value(&self) -> Option<&CStr> {
        // SAFETY: `value` is not null, so `value` is a C string that exists as long as the list.
        (!self.value.is_null()).then(|| unsafe { CStr::from_ptr(self.value) })
    }
}

/// Creates a list of pairs of strings. The strings must outlive all uses of the list.
pub(super) fn chained<'a>(texts: impl Iterator<Item = (&'a CStr, Option<&'a CStr>)>) -> Vec<UdevList> {
    let one = |(name, value): (&CStr, Option<&CStr>)| UdevList {
        next: null(),
        name: name.as_ptr(),
        value: value.map_or(null(), CStr::as_ptr),
    };
    let mut list: Vec<UdevList> = texts.map(one).collect();
    let start = list.as_ptr();
    let count = list.len();
    for (number, entry) in list.iter_mut().enumerate().take(count.saturating_sub(1)) {
        entry.next = start.wrapping_add(number + 1);
    }
    list
}

/// Returns the address of a list's first entry, or null.
pub(super) fn first(list: &[UdevList]) -> *const UdevList {
    if list.is_empty() { null() } else { list.as_ptr() }
}

/// An emulated device.
#[derive(Debug)]
pub(super) struct UdevEntry {
    /// The path of the device in `/sys`.
    pub(super) path: CString,
    pub(super) subsystem: &'static CStr,
    /// The path of the device's node and the number of the node. `None` and 0 if the device has no node.
    pub(super) node: Option<&'static CStr>,
    pub(super) number: libc::dev_t,
    pub(super) properties: Vec<UdevList>,
    pub(super) attributes: Vec<UdevList>,
    pub(super) tags: Vec<UdevList>,
}

/// Strings of a new entry, with their names.
type Texts = Vec<(&'static str, String)>;

impl UdevEntry {
    /// Creates an entry. The entry and its strings are never freed.
    fn new(
        path: &str,
        subsystem: &'static CStr,
        (node, number): (Option<&'static CStr>, libc::dev_t),
        properties: Texts,
        attributes: Texts,
        tags: &[&'static CStr],
    ) -> UdevEntry {
        let mut all: Texts = vec![
            ("DEVPATH", path["/sys".len()..].to_owned()),
            ("SUBSYSTEM", subsystem.to_string_lossy().into_owned()),
        ];
        let mut uevent: Texts = Vec::new();
        if let Some(node) = node {
            let node = node.to_string_lossy();
            all.push(("DEVNAME", node.clone().into_owned()));
            all.extend([
                ("MAJOR", libc::major(number).to_string()),
                ("MINOR", libc::minor(number).to_string()),
            ]);
            uevent.extend([
                ("MAJOR", libc::major(number).to_string()),
                ("MINOR", libc::minor(number).to_string()),
            ]);
            uevent.push(("DEVNAME", node["/dev/".len()..].to_owned()));
        }
        all.extend(properties);
        if !tags.is_empty() {
            let tags: Vec<_> = tags.iter().map(|tag| tag.to_string_lossy()).collect();
            let tags = format!(":{}:", tags.join(":"));
            all.extend([("TAGS", tags.clone()), ("CURRENT_TAGS", tags)]);
        }
        all.push(("USEC_INITIALIZED", "1000000".to_owned()));
        let mut files = attributes;
        if node.is_some() {
            files.push(("dev", format!("{}:{}", libc::major(number), libc::minor(number))));
        }
        let lines: Vec<String> = uevent.into_iter().map(|(name, value)| format!("{name}={value}")).collect();
        files.push(("uevent", lines.join("\n")));
        UdevEntry {
            path: CString::new(path).unwrap_or_default(),
            subsystem,
            node,
            number,
            properties: leaked(all),
            attributes: leaked(files),
            tags: chained(tags.iter().map(|tag| (*tag, None))),
        }
    }

    /// Returns the last component of the path.
    pub(super) fn name(&self) -> &CStr {
        let path = self.path.as_bytes_with_nul();
        let start = path.iter().rposition(|byte| *byte == b'/').map_or(0, |slash| slash + 1);
        CStr::from_bytes_with_nul(&path[start..]).unwrap_or_default()
    }

    /// Returns the path without the prefix `/sys`.
    pub(super) fn devpath(&self) -> &CStr {
        CStr::from_bytes_with_nul(&self.path.as_bytes_with_nul()["/sys".len()..]).unwrap_or_default()
    }

    /// Returns the number at the end of the name.
    pub(super) fn sysnum(&self) -> Option<&CStr> {
        let name = self.name().to_bytes_with_nul();
        let digits = name.iter().rev().skip(1).take_while(|byte| byte.is_ascii_digit()).count();
        let number = CStr::from_bytes_with_nul(&name[name.len() - 1 - digits..]).ok()?;
        (digits > 0).then_some(number)
    }

    pub(super) fn devtype(&self) -> Option<&CStr> {
        self.property(c"DEVTYPE")
    }

    pub(super) fn property(&self, name: &CStr) -> Option<&CStr> {
        self.properties.iter().find(|entry| entry.name() == name)?.value()
    }

    pub(super) fn attribute(&self, name: &CStr) -> Option<&CStr> {
        self.attributes.iter().find(|entry| entry.name() == name)?.value()
    }

    pub(super) fn has_tag(&self, tag: &CStr) -> bool {
        self.tags.iter().any(|entry| entry.name() == tag)
    }

    /// Returns whether `path` is the path of this device, or the path of a folder above this device.
    pub(super) fn is_below(&self, path: &CStr) -> bool {
        let rest = self.path.as_bytes().strip_prefix(path.to_bytes());
        rest.is_some_and(|rest| rest.first().is_none_or(|byte| *byte == b'/'))
    }
}

/// Returns a list of strings that are never freed.
fn leaked(texts: Texts) -> Vec<UdevList> {
    let text = |text: String| -> &'static CStr {
        Box::leak(CString::new(text).unwrap_or_default().into_boxed_c_str())
    };
    let texts: Vec<(&CStr, &CStr)> =
        texts.into_iter().map(|(name, value)| (text(name.to_owned()), text(value))).collect();
    chained(texts.into_iter().map(|(name, value)| (name, Some(value))))
}

/// All emulated devices.
#[derive(Debug, Default)]
pub(super) struct Tree {
    pub(super) entries: Vec<UdevEntry>,
    /// Entries for the subsystems of the devices. Each of these entries has the subsystem `subsystem`.
    pub(super) subsystems: Vec<UdevEntry>,
}

/// The path of the board. The path contains a bus address. `GET_UNIQUE` and the description for libdrm contain the same
/// bus address.
const BOARD: &str = "/sys/devices/pci0000:01/0000:01:00.0";

impl Tree {
    /// Returns the devices of a machine: this board, and the input devices.
    pub(super) fn new(device: &Device) -> Tree {
        let mut entries = vec![board(device)];
        entries.push(graphics("card0", CARD, CARD_NUMBER, &[c"master-of-seat", c"seat", c"uaccess"]));
        entries.push(graphics("renderD128", PATH, NUMBER, &[]));
        for device in InputDevice::ALL {
            entries.extend(input_entries(device));
        }
        let paths = ["/sys/bus/pci", "/sys/class/drm", "/sys/class/input"];
        let subsystem = |path| UdevEntry::new(path, c"subsystem", (None, 0), Vec::new(), Vec::new(), &[]);
        Tree { entries, subsystems: paths.map(subsystem).into() }
    }

    pub(super) fn of_path(&self, path: &CStr) -> Option<&UdevEntry> {
        self.entries.iter().find(|entry| *entry.path == *path)
    }

    pub(super) fn of_number(&self, number: libc::dev_t) -> Option<&UdevEntry> {
        self.entries.iter().find(|entry| entry.node.is_some() && entry.number == number)
    }

    pub(super) fn of_name(&self, subsystem: &CStr, name: &CStr) -> Option<&UdevEntry> {
        self.entries.iter().find(|entry| entry.subsystem == subsystem && entry.name() == name)
    }

    /// Returns the parent of a device. The parent is the device with the innermost folder among all other devices whose
    /// folders contain the device.
    pub(super) fn parent(&self, entry: &UdevEntry) -> Option<&UdevEntry> {
        let others = self.entries.iter().filter(|other| other.path != entry.path);
        others.filter(|other| entry.is_below(&other.path)).max_by_key(|other| other.path.as_bytes().len())
    }
}

fn board(device: &Device) -> UdevEntry {
    let (vendor, id) = (device.board.driver.vendor(), device.pci);
    let properties = vec![
        ("DRIVER", device.board.driver.kernel().to_owned()),
        ("PCI_CLASS", "30000".to_owned()),
        ("PCI_ID", format!("{vendor:04X}:{id:04X}")),
        ("PCI_SUBSYS_ID", "0000:0000".to_owned()),
        ("PCI_SLOT_NAME", "0000:01:00.0".to_owned()),
        ("MODALIAS", format!("pci:v{vendor:08X}d{id:08X}sv00000000sd00000000bc03sc00i00")),
    ];
    let attributes = vec![
        ("vendor", format!("{vendor:#06x}")),
        ("device", format!("{id:#06x}")),
        ("subsystem_vendor", "0x0000".to_owned()),
        ("subsystem_device", "0x0000".to_owned()),
        ("class", "0x030000".to_owned()),
        ("revision", "0x00".to_owned()),
        ("boot_vga", "1".to_owned()),
        ("enable", "1".to_owned()),
    ];
    UdevEntry::new(BOARD, c"pci", (None, 0), properties, attributes, &[])
}

fn graphics(name: &str, node: &'static CStr, number: libc::dev_t, tags: &[&'static CStr]) -> UdevEntry {
    let properties = vec![
        ("DEVTYPE", "drm_minor".to_owned()),
        ("ID_PATH", "pci-0000:01:00.0".to_owned()),
        ("ID_PATH_TAG", "pci-0000_01_00_0".to_owned()),
    ];
    UdevEntry::new(&format!("{BOARD}/drm/{name}"), c"drm", (Some(node), number), properties, Vec::new(), tags)
}

/// Formats a set of bits as the kernel does. The text consists of hexadecimal words, and the highest word is first.
fn words(bits: &[u8]) -> String {
    let words =
        bits.chunks(8).map(|word| word.iter().rev().fold(0_u64, |word, byte| word << 8 | u64::from(*byte)));
    let words: Vec<u64> = words.collect();
    let used = words.iter().rposition(|word| *word != 0).map_or(1, |last| last + 1);
    words[..used].iter().rev().map(|word| format!("{word:x}")).collect::<Vec<_>>().join(" ")
}

/// Returns the entries of an input device and of its event node.
fn input_entries(device: InputDevice) -> [UdevEntry; 2] {
    let number = device.number();
    let path = format!("/sys/devices/virtual/input/input{number}");
    let text = |text: &CStr| text.to_string_lossy().into_owned();
    let [bus, vendor, product, version] = device.id();
    let bits = |kind| words(&device.bits(kind).unwrap_or_default());
    let class = match device {
        InputDevice::Keyboard => {
            vec![("ID_INPUT_KEY", "1".to_owned()), ("ID_INPUT_KEYBOARD", "1".to_owned())]
        }
        InputDevice::Pointer => vec![("ID_INPUT_MOUSE", "1".to_owned())],
    };
    let of_events: Texts = [("ID_INPUT", "1".to_owned()), ("ID_SERIAL", "noserial".to_owned())]
        .into_iter()
        .chain(class)
        .collect();
    let mut properties = vec![
        ("PRODUCT", format!("{bus:x}/{vendor:x}/{product:x}/{version:x}")),
        ("NAME", format!("\"{}\"", text(device.name()))),
        ("PHYS", format!("\"{}\"", text(device.place()))),
        ("PROP", "0".to_owned()),
        ("EV", bits(input::SYN)),
    ];
    let mut attributes = vec![
        ("name", text(device.name())),
        ("phys", text(device.place())),
        ("uniq", String::new()),
        ("properties", "0".to_owned()),
        ("id/bustype", format!("{bus:04x}")),
        ("id/vendor", format!("{vendor:04x}")),
        ("id/product", format!("{product:04x}")),
        ("id/version", format!("{version:04x}")),
        ("capabilities/ev", bits(input::SYN)),
    ];
    let kinds = [
        ("KEY", "capabilities/key", input::KEY),
        ("REL", "capabilities/rel", input::REL),
        ("ABS", "capabilities/abs", input::ABS),
        ("LED", "capabilities/led", input::LED),
    ];
    for (name, file, kind) in kinds {
        properties.push((name, bits(kind)));
        attributes.push((file, bits(kind)));
    }
    properties.extend(of_events.clone());
    let node = match device {
        InputDevice::Keyboard => paths::KEYBOARD,
        InputDevice::Pointer => paths::POINTER,
    };
    [
        UdevEntry::new(&path, c"input", (None, 0), properties, attributes, &[c"seat"]),
        UdevEntry::new(
            &format!("{path}/event{number}"),
            c"input",
            (Some(node), paths::input_number(device)),
            of_events,
            Vec::new(),
            &[],
        ),
    ]
}

#[cfg(test)]
mod tests {
    use reconverge_board::Board;

    use super::*;

    #[test]
    fn a_node_is_found_by_number_and_its_parent_is_the_board() {
        let tree = Tree::new(&Device::new(Board::named("gt215").unwrap()));
        let card = tree.of_number(libc::makedev(226, 0)).unwrap();
        let found = (card.name(), card.node, card.sysnum(), card.devtype());
        assert_eq!(found, (c"card0", Some(c"/dev/dri/card0"), Some(c"0"), Some(c"drm_minor")));
        let board = tree.parent(card).unwrap();
        let values = [c"vendor", c"device", c"boot_vga"].map(|name| board.attribute(name));
        assert_eq!(values, [Some(c"0x10de"), Some(c"0x0ca3"), Some(c"1")]);
        assert!((board.subsystem, board.property(c"DRIVER")) == (c"pci", Some(c"nouveau")));
        assert!(tree.parent(board).is_none() && tree.of_number(0).is_none());
        assert_eq!(card.devpath(), c"/devices/pci0000:01/0000:01:00.0/drm/card0");
    }

    #[test]
    fn input_devices_have_a_parent_with_their_name() {
        let tree = Tree::new(&Device::new(Board::named("rv515").unwrap()));
        let node = tree.of_name(c"input", c"event1").unwrap();
        let parent = tree.parent(node).unwrap();
        assert_eq!(parent.attribute(c"name"), Some(c"Reconverge pointer"));
        // The buttons are the bits 272 to 276, which are in the fifth word.
        assert_eq!(parent.attribute(c"capabilities/key"), Some(c"1f0000 0 0 0 0"));
        assert_eq!((node.number, node.property(c"ID_SEAT")), (libc::makedev(13, 65), None));
    }
}
