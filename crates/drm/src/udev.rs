//! The functions of libudev, for programs that use libudev to search for devices.
//!
//! If a chip is selected, this library implements all functions of libudev. Therefore, a program never passes an object
//! of this library to libudev. A program also never passes an object of libudev to this library. `udev/tree.rs` defines
//! the devices. Devices are not added or removed later. If no chip is selected, all calls are passed to libudev.
//!
//! A program calls the functions of this library instead of the functions of libudev in two cases. In the first case,
//! the program is linked with libudev. In the second case, the program looks up the functions in all libraries
//! (`RTLD_DEFAULT`).
//!
//! Source: systemd's `src/libudev/libudev.h`. The rules of a search follow `libudev-enumerate.c`.

mod tree;

use std::ffi::{CStr, CString, c_char, c_int, c_uint, c_ulonglong, c_void};
use std::ptr::{null, null_mut};
use std::str::Utf8Chunk;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

use crate::device;
use crate::real::{self, Symbol, call};
use crate::sockets;

pub use tree::UdevList;
use tree::{Tree, UdevEntry};

/// The libudev context of a program.
#[derive(Debug)]
pub struct Udev {
    references: AtomicUsize,
    user: AtomicPtr<c_void>,
}

/// A device object that a program has received.
#[derive(Debug)]
pub struct UdevDevice {
    references: AtomicUsize,
    udev: *mut Udev,
    entry: &'static UdevEntry,
    /// The object of the parent device, or null. This object holds a reference to the object of the parent.
    parent: *mut UdevDevice,
}

/// A search for devices (`udev_enumerate`).
#[derive(Debug)]
pub struct UdevSearch {
    references: AtomicUsize,
    udev: *mut Udev,
    rules: Vec<SearchRule>,
    found: Vec<UdevList>,
    /// The strings to which the list `found` refers.
    texts: Vec<CString>,
}

/// A monitor for devices that are added or removed. The monitor never reports a device.
#[derive(Debug)]
pub struct UdevMonitor {
    references: AtomicUsize,
    udev: *mut Udev,
    descriptor: c_int,
}

/// The event queue of the device manager. The queue is always empty.
pub type UdevQueue = UdevMonitor;

/// A condition of a search. The strings are patterns of `fnmatch`.
#[derive(Debug)]
enum SearchRule {
    Subsystem(CString),
    NotSubsystem(CString),
    Attribute(CString, Option<CString>),
    NotAttribute(CString, Option<CString>),
    Property(CString, Option<CString>),
    Name(CString),
    Tag(CString),
    Below(CString),
}

/// An object with a reference count that the program changes.
trait Counted {
    fn references(&self) -> &AtomicUsize;
    /// Releases the data that the object owns.
    fn end(&mut self) {}
}

impl Counted for Udev {
    fn references(&self) -> &AtomicUsize {
        &self.references
    }
}

impl Counted for UdevDevice {
    fn references(&self) -> &AtomicUsize {
        &self.references
    }

    fn end(&mut self) {
        // SAFETY: `parent` is null, or points to a device. This object owns a reference to the device.
        unsafe { give_back(self.parent) };
    }
}

impl Counted for UdevSearch {
    fn references(&self) -> &AtomicUsize {
        &self.references
    }
}

impl Counted for UdevMonitor {
    fn references(&self) -> &AtomicUsize {
        &self.references
    }

    fn end(&mut self) {
        real::close_own(self.descriptor);
    }
}

/// Adds a reference to an object.
///
/// # Safety
/// `object` must be null or a pointer that this library returned.
unsafe fn refer<T: Counted>(object: *mut T) -> *mut T {
    // SAFETY: the caller meets the requirements of this function.
    if let Some(object) = unsafe { object.as_ref() } {
        object.references().fetch_add(1, Ordering::Relaxed);
    }
    object
}

/// Drops a reference to an object. Frees the object if this reference was the last reference. Returns null.
///
/// # Safety
/// The caller must meet the requirements of [`refer`].
unsafe fn give_back<T: Counted>(object: *mut T) -> *mut T {
    // SAFETY: `object` is null or a pointer that this library returned. After the last reference is dropped, no code
    // uses the object.
    unsafe {
        if object.as_ref().is_some_and(|it| it.references().fetch_sub(1, Ordering::AcqRel) == 1) {
            Box::from_raw(object).end();
        }
    }
    null_mut()
}

fn first() -> AtomicUsize {
    AtomicUsize::new(1)
}

/// A result type. [`Nothing::NOTHING`] is the result of a function that fails.
trait Nothing {
    const NOTHING: Self;
}

impl<T> Nothing for *mut T {
    const NOTHING: Self = null_mut();
}
impl<T> Nothing for *const T {
    const NOTHING: Self = null();
}
impl Nothing for () {
    const NOTHING: Self = ();
}
impl Nothing for c_int {
    const NOTHING: Self = -libc::ENOSYS;
}
impl Nothing for c_ulonglong {
    const NOTHING: Self = 0;
}

/// Sets `errno`, and returns the result of a function that fails.
fn fails<T: Nothing>(errno: c_int) -> T {
    real::set_errno(errno);
    T::NOTHING
}

/// Defines functions of libudev. If no chip is selected, each defined function calls libudev's function with the same
/// name.
macro_rules! functions {
    ($(fn $name:ident($($argument:ident: $kind:ty),*) -> $answer:ty $ours:block)*) => {$(
        #[doc = concat!("`", stringify!($name), "`.")]
        ///
        /// # Safety
        /// The caller must meet the requirements of the function in libudev.
        #[cfg_attr(not(test), unsafe(no_mangle))]
        pub unsafe extern "C" fn $name($($argument: $kind),*) -> $answer {
            const NAME: &CStr = match CStr::from_bytes_with_nul(concat!(stringify!($name), "\0").as_bytes()) {
                Ok(name) => name,
                Err(_) => panic!("a name"),
            };
            static REAL: Symbol = Symbol::new(NAME);
            if device::chosen().is_none() {
                return call!(
                    REAL.address_in_libudev(),
                    fn($($kind),*) -> $answer,
                    ($($argument),*), else fails::<$answer>(libc::ENOSYS)
                );
            }
            // SAFETY: libudev requires that objects and strings are null or valid, and the caller meets this
            // requirement.
            #[allow(unused_unsafe, reason = "not every function accesses an object")]
            unsafe { $ours }
        }
    )*};
}

/// Returns a copy of a C string, or `None` for null.
///
/// # Safety
/// `text` must be null or a C string.
unsafe fn text(text: *const c_char) -> Option<CString> {
    // SAFETY: `text` is null or a C string, and this branch has excluded null.
    (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) }.to_owned())
}

fn address(text: Option<&CStr>) -> *const c_char {
    text.map_or(null(), CStr::as_ptr)
}

/// Creates objects for a device and all its parents. Returns the object of the device.
fn handed_out(udev: *mut Udev, entry: &'static UdevEntry) -> *mut UdevDevice {
    let parent = tree().parent(entry).map_or(null_mut(), |parent| handed_out(udev, parent));
    Box::into_raw(Box::new(UdevDevice { references: first(), udev, entry, parent }))
}

/// Returns a new object for the device `found`. If `found` is `None`, fails with the error for a device that does not
/// exist.
fn handed_out_if(udev: *mut Udev, found: Option<&'static UdevEntry>) -> *mut UdevDevice {
    found.map_or_else(|| fails(libc::ENODEV), |entry| handed_out(udev, entry))
}

/// Calls `find` with the entry of a device, and returns the result of `find`.
///
/// # Safety
/// `device` must be null or a pointer that this library returned.
unsafe fn of_entry<T: Nothing>(device: *mut UdevDevice, find: impl FnOnce(&'static UdevEntry) -> T) -> T {
    // SAFETY: the caller meets the requirements of this function.
    match unsafe { device.as_ref() } {
        Some(device) => find(device.entry),
        None => fails(libc::EINVAL),
    }
}

/// Returns the emulated devices of this process.
fn tree() -> &'static Tree {
    // This variable is not a `OnceLock`. If one thread forked while another thread initialised a `OnceLock`, the child
    // would wait for the `OnceLock` forever.
    static TREE: AtomicPtr<Tree> = AtomicPtr::new(null_mut());
    // SAFETY: if the pointer is not null, the value behind the pointer is never freed and has only shared references.
    if let Some(tree) = unsafe { TREE.load(Ordering::Acquire).as_ref() } {
        return tree;
    }
    let made = Box::into_raw(Box::new(device::chosen().map_or_else(Tree::default, Tree::new)));
    let tree = match TREE.compare_exchange(null_mut(), made, Ordering::AcqRel, Ordering::Acquire) {
        Ok(_) => made,
        Err(other) => other,
    };
    // SAFETY: the value behind the pointer is never freed and has only shared references.
    unsafe { &*tree }
}

/// Returns whether a string matches a pattern.
fn fits(pattern: &CStr, text: &CStr) -> bool {
    // SAFETY: both arguments are C strings.
    unsafe { libc::fnmatch(pattern.as_ptr(), text.as_ptr(), 0) == 0 }
}

fn fits_value(pattern: Option<&CString>, value: Option<&CStr>) -> bool {
    value.is_some_and(|value| pattern.is_none_or(|pattern| fits(pattern, value)))
}

/// Returns whether an entry matches all rules. A search may have several rules for subsystems, several rules for
/// properties and several rules for names. If a search has several rules of the same kind, an entry must match at least
/// one rule of this kind.
fn is_found(rules: &[SearchRule], entry: &UdevEntry) -> bool {
    // Each kind of rules for subsystems, properties or names has two flags. The first flag is set if a rule of this
    // kind exists. The second flag is set if the entry matches a rule of this kind.
    let mut kinds = [(false, false); 3];
    for rule in rules {
        let (kind, holds) = match rule {
            SearchRule::NotSubsystem(name) if fits(name, entry.subsystem) => return false,
            SearchRule::Attribute(name, value) if !fits_value(value.as_ref(), entry.attribute(name)) => {
                return false;
            }
            SearchRule::NotAttribute(name, value) if fits_value(value.as_ref(), entry.attribute(name)) => {
                return false;
            }
            SearchRule::Tag(tag) if !entry.has_tag(tag) => return false,
            SearchRule::Below(path) if !entry.is_below(path) => return false,
            SearchRule::NotSubsystem(_)
            | SearchRule::Attribute(..)
            | SearchRule::NotAttribute(..)
            | SearchRule::Tag(_)
            | SearchRule::Below(_) => continue,
            SearchRule::Subsystem(name) => (0, fits(name, entry.subsystem)),
            // In libudev, a rule without a value matches only properties without a value. All properties of the
            // emulated devices have values. Therefore, a rule without a value never matches.
            SearchRule::Property(name, value) => (
                1,
                value.is_some()
                    && entry.properties.iter().any(|property| {
                        fits(name, property.name()) && fits_value(value.as_ref(), property.value())
                    }),
            ),
            SearchRule::Name(name) => (2, fits(name, entry.name())),
        };
        kinds[kind] = (true, kinds[kind].1 || holds);
    }
    kinds.iter().all(|(exists, holds)| !exists || *holds)
}

/// Adds a rule to a search. Returns 0, or an error as a negative number.
///
/// # Safety
/// `search` must be null or a pointer that this library returned.
unsafe fn add(search: *mut UdevSearch, rule: Option<SearchRule>) -> c_int {
    // SAFETY: the caller meets the requirements of this function.
    match unsafe { search.as_mut() } {
        Some(search) => {
            search.rules.extend(rule);
            0
        }
        None => -libc::EINVAL,
    }
}

/// Adds a rule with which the search finds only devices below a parent. The new rule replaces an earlier rule of this
/// kind. (`sd_device_enumerator_add_match_parent`)
///
/// # Safety
/// The caller must meet the requirements of [`add`].
unsafe fn add_parent(search: *mut UdevSearch, path: CString) -> c_int {
    // SAFETY: the caller meets the requirements of this function.
    unsafe {
        if let Some(search) = search.as_mut() {
            search.rules.retain(|rule| !matches!(rule, SearchRule::Below(_)));
        }
        add(search, Some(SearchRule::Below(path)))
    }
}

/// If an object or a string is null, returns an error as a negative number. Otherwise returns 0.
fn error_of_null<T>(object: *mut T, texts: &[*const c_char]) -> c_int {
    if object.is_null() || texts.iter().any(|text| text.is_null()) { -libc::EINVAL } else { 0 }
}

impl UdevSearch {
    fn find(&mut self, texts: impl Iterator<Item = CString>) {
        self.texts = texts.collect();
        self.found = tree::chained(self.texts.iter().map(|text| (text.as_c_str(), None)));
    }
}

fn monitor(udev: *mut Udev) -> *mut UdevMonitor {
    match sockets::silent(None, libc::O_NONBLOCK | libc::O_CLOEXEC) {
        Ok(descriptor) => Box::into_raw(Box::new(UdevMonitor { references: first(), udev, descriptor })),
        Err(errno) => fails(errno.0),
    }
}

/// Returns the device with an identifier. The identifier is either a subsystem and a name (`+drm:card0`), or a kind and
/// a device number (`c226:0`). (`libudev.h`, "device id")
fn of_id(id: &CStr) -> Option<&'static UdevEntry> {
    let id = id.to_str().ok()?;
    let (kind, rest) = id.split_at_checked(1)?;
    let (left, right) = rest.split_once(':')?;
    match kind {
        "c" => {
            let number = libc::makedev(left.parse().ok()?, right.parse().ok()?);
            tree().of_number(number)
        }
        "+" => tree().of_name(&CString::new(left).ok()?, &CString::new(right).ok()?),
        _ => None,
    }
}

/// Encodes a string for the name of a link. The function keeps ASCII letters, digits, some punctuation, and all valid
/// non-ASCII characters of UTF-8. Each remaining byte becomes `\xNN`. (`encode_devnode_name`)
fn encoded(text: &[u8]) -> Vec<u8> {
    let is_kept =
        |letter: char| letter.is_ascii_alphanumeric() || !letter.is_ascii() || "#+-.:=@_".contains(letter);
    let hex = |byte: u8| format!("\\x{byte:02x}");
    let chunk = |chunk: Utf8Chunk<'_>| -> String {
        // In valid UTF-8, the function encodes only ASCII characters.
        let valid = chunk.valid().chars();
        let valid = valid.map(|letter| if is_kept(letter) { letter.to_string() } else { hex(letter as u8) });
        valid.chain(chunk.invalid().iter().copied().map(hex)).collect()
    };
    text.utf8_chunks().map(chunk).collect::<String>().into_bytes()
}

functions! {
    fn udev_new() -> *mut Udev {
        Box::into_raw(Box::new(Udev { references: first(), user: AtomicPtr::new(null_mut()) }))
    }
    fn udev_ref(udev: *mut Udev) -> *mut Udev { refer(udev) }
    fn udev_unref(udev: *mut Udev) -> *mut Udev { give_back(udev) }
    fn udev_get_userdata(udev: *mut Udev) -> *mut c_void {
        udev.as_ref().map_or_else(|| fails(libc::EINVAL), |udev| udev.user.load(Ordering::Relaxed))
    }
    fn udev_set_userdata(udev: *mut Udev, user: *mut c_void) -> () {
        if let Some(udev) = udev.as_ref() {
            udev.user.store(user, Ordering::Relaxed);
        }
    }
    // This library does not log.
    fn udev_set_log_fn(_udev: *mut Udev, _log: *mut c_void) -> () {}
    fn udev_get_log_priority(_udev: *mut Udev) -> c_int { 3 }
    fn udev_set_log_priority(_udev: *mut Udev, _priority: c_int) -> () {}

    fn udev_device_new_from_syspath(udev: *mut Udev, path: *const c_char) -> *mut UdevDevice {
        handed_out_if(udev, text(path).and_then(|path| tree().of_path(&path)))
    }
    fn udev_device_new_from_devnum(udev: *mut Udev, kind: c_char, number: libc::dev_t) -> *mut UdevDevice {
        let is_character = kind == b'c' as c_char;
        handed_out_if(udev, tree().of_number(number).filter(|_| is_character))
    }
    fn udev_device_new_from_subsystem_sysname(
        udev: *mut Udev, subsystem: *const c_char, name: *const c_char
    ) -> *mut UdevDevice {
        let names = text(subsystem).zip(text(name));
        handed_out_if(udev, names.and_then(|(subsystem, name)| tree().of_name(&subsystem, &name)))
    }
    fn udev_device_new_from_device_id(udev: *mut Udev, id: *const c_char) -> *mut UdevDevice {
        handed_out_if(udev, text(id).and_then(|id| of_id(&id)))
    }
    // A device manager passes the device to a program in the environment of the program. This machine has no device
    // manager.
    fn udev_device_new_from_environment(_udev: *mut Udev) -> *mut UdevDevice { fails(libc::ENODEV) }
    fn udev_device_ref(device: *mut UdevDevice) -> *mut UdevDevice { refer(device) }
    fn udev_device_unref(device: *mut UdevDevice) -> *mut UdevDevice { give_back(device) }
    fn udev_device_get_udev(device: *mut UdevDevice) -> *mut Udev {
        device.as_ref().map_or_else(|| fails(libc::EINVAL), |device| device.udev)
    }
    fn udev_device_get_parent(device: *mut UdevDevice) -> *mut UdevDevice {
        match device.as_ref() {
            Some(device) if !device.parent.is_null() => device.parent,
            Some(_) => fails(libc::ENODEV),
            None => fails(libc::EINVAL),
        }
    }
    fn udev_device_get_parent_with_subsystem_devtype(
        device: *mut UdevDevice, subsystem: *const c_char, kind: *const c_char
    ) -> *mut UdevDevice {
        let (Some(device), Some(subsystem)) = (device.as_ref(), text(subsystem)) else {
            return fails(libc::EINVAL);
        };
        let (kind, mut next) = (text(kind), device.parent);
        while let Some(parent) = next.as_ref() {
            let is_kind = kind.is_none() || kind.as_deref() == parent.entry.devtype();
            if *subsystem == *parent.entry.subsystem && is_kind {
                return next;
            }
            next = parent.parent;
        }
        fails(libc::ENODEV)
    }
    fn udev_device_get_syspath(device: *mut UdevDevice) -> *const c_char {
        of_entry(device, |entry| entry.path.as_ptr())
    }
    fn udev_device_get_devpath(device: *mut UdevDevice) -> *const c_char {
        of_entry(device, |entry| entry.devpath().as_ptr())
    }
    fn udev_device_get_sysname(device: *mut UdevDevice) -> *const c_char {
        of_entry(device, |entry| entry.name().as_ptr())
    }
    fn udev_device_get_sysnum(device: *mut UdevDevice) -> *const c_char {
        of_entry(device, |entry| address(entry.sysnum()))
    }
    fn udev_device_get_subsystem(device: *mut UdevDevice) -> *const c_char {
        of_entry(device, |entry| entry.subsystem.as_ptr())
    }
    fn udev_device_get_devtype(device: *mut UdevDevice) -> *const c_char {
        of_entry(device, |entry| address(entry.devtype()))
    }
    fn udev_device_get_devnode(device: *mut UdevDevice) -> *const c_char {
        of_entry(device, |entry| entry.node.map_or_else(|| fails(libc::ENOENT), CStr::as_ptr))
    }
    fn udev_device_get_driver(device: *mut UdevDevice) -> *const c_char {
        of_entry(device, |entry| address(entry.property(c"DRIVER")))
    }
    fn udev_device_get_devnum(device: *mut UdevDevice) -> libc::dev_t {
        of_entry(device, |entry| entry.number)
    }
    // Only devices that a monitor reports have an action.
    fn udev_device_get_action(device: *mut UdevDevice) -> *const c_char {
        of_entry(device, |_| null())
    }
    fn udev_device_get_seqnum(device: *mut UdevDevice) -> c_ulonglong { of_entry(device, |_| 0_u64) }
    fn udev_device_get_usec_since_initialized(device: *mut UdevDevice) -> c_ulonglong {
        of_entry(device, |_| 1_000_000_u64)
    }
    fn udev_device_get_is_initialized(device: *mut UdevDevice) -> c_int { of_entry(device, |_| 1) }
    fn udev_device_get_property_value(device: *mut UdevDevice, name: *const c_char) -> *const c_char {
        let Some(name) = text(name) else { return fails(libc::EINVAL) };
        of_entry(device, |entry| entry.property(&name).map_or_else(|| fails(libc::ENOENT), CStr::as_ptr))
    }
    fn udev_device_get_sysattr_value(device: *mut UdevDevice, name: *const c_char) -> *const c_char {
        let Some(name) = text(name) else { return fails(libc::EINVAL) };
        of_entry(device, |entry| entry.attribute(&name).map_or_else(|| fails(libc::ENOENT), CStr::as_ptr))
    }
    fn udev_device_set_sysattr_value(
        device: *mut UdevDevice, name: *const c_char, _value: *const c_char
    ) -> c_int {
        let Some(name) = text(name) else { return -libc::EINVAL };
        of_entry(device, |entry| if entry.attribute(&name).is_some() { -libc::EACCES } else { -libc::ENOENT })
    }
    fn udev_device_get_properties_list_entry(device: *mut UdevDevice) -> *const UdevList {
        of_entry(device, |entry| tree::first(&entry.properties))
    }
    fn udev_device_get_sysattr_list_entry(device: *mut UdevDevice) -> *const UdevList {
        of_entry(device, |entry| tree::first(&entry.attributes))
    }
    fn udev_device_get_tags_list_entry(device: *mut UdevDevice) -> *const UdevList {
        of_entry(device, |entry| tree::first(&entry.tags))
    }
    fn udev_device_get_current_tags_list_entry(device: *mut UdevDevice) -> *const UdevList {
        of_entry(device, |entry| tree::first(&entry.tags))
    }
    // The emulated nodes have no links.
    fn udev_device_get_devlinks_list_entry(device: *mut UdevDevice) -> *const UdevList {
        of_entry(device, |_| null())
    }
    fn udev_device_has_tag(device: *mut UdevDevice, tag: *const c_char) -> c_int {
        of_entry(device, |entry| c_int::from(text(tag).is_some_and(|tag| entry.has_tag(&tag))))
    }
    fn udev_device_has_current_tag(device: *mut UdevDevice, tag: *const c_char) -> c_int {
        of_entry(device, |entry| c_int::from(text(tag).is_some_and(|tag| entry.has_tag(&tag))))
    }

    fn udev_list_entry_get_next(list: *const UdevList) -> *const UdevList {
        list.as_ref().map_or(null(), UdevList::next)
    }
    fn udev_list_entry_get_name(list: *const UdevList) -> *const c_char {
        list.as_ref().map_or(null(), |entry| entry.name().as_ptr())
    }
    fn udev_list_entry_get_value(list: *const UdevList) -> *const c_char {
        list.as_ref().map_or(null(), |entry| address(entry.value()))
    }
    fn udev_list_entry_get_by_name(list: *const UdevList, name: *const c_char) -> *const UdevList {
        let Some(name) = text(name) else { return fails(libc::EINVAL) };
        let mut next = list;
        while let Some(entry) = next.as_ref() {
            if *entry.name() == *name {
                return next;
            }
            next = entry.next();
        }
        null()
    }

    fn udev_enumerate_new(udev: *mut Udev) -> *mut UdevSearch {
        Box::into_raw(Box::new(UdevSearch {
            references: first(), udev, rules: Vec::new(), found: Vec::new(), texts: Vec::new()
        }))
    }
    fn udev_enumerate_ref(search: *mut UdevSearch) -> *mut UdevSearch { refer(search) }
    fn udev_enumerate_unref(search: *mut UdevSearch) -> *mut UdevSearch { give_back(search) }
    fn udev_enumerate_get_udev(search: *mut UdevSearch) -> *mut Udev {
        search.as_ref().map_or_else(|| fails(libc::EINVAL), |search| search.udev)
    }
    fn udev_enumerate_add_match_subsystem(search: *mut UdevSearch, name: *const c_char) -> c_int {
        add(search, text(name).map(SearchRule::Subsystem))
    }
    fn udev_enumerate_add_nomatch_subsystem(search: *mut UdevSearch, name: *const c_char) -> c_int {
        add(search, text(name).map(SearchRule::NotSubsystem))
    }
    fn udev_enumerate_add_match_sysattr(
        search: *mut UdevSearch, name: *const c_char, value: *const c_char
    ) -> c_int {
        add(search, text(name).map(|name| SearchRule::Attribute(name, text(value))))
    }
    fn udev_enumerate_add_nomatch_sysattr(
        search: *mut UdevSearch, name: *const c_char, value: *const c_char
    ) -> c_int {
        add(search, text(name).map(|name| SearchRule::NotAttribute(name, text(value))))
    }
    fn udev_enumerate_add_match_property(
        search: *mut UdevSearch, name: *const c_char, value: *const c_char
    ) -> c_int {
        add(search, text(name).map(|name| SearchRule::Property(name, text(value))))
    }
    fn udev_enumerate_add_match_sysname(search: *mut UdevSearch, name: *const c_char) -> c_int {
        add(search, text(name).map(SearchRule::Name))
    }
    fn udev_enumerate_add_match_tag(search: *mut UdevSearch, tag: *const c_char) -> c_int {
        add(search, text(tag).map(SearchRule::Tag))
    }
    fn udev_enumerate_add_match_parent(search: *mut UdevSearch, parent: *mut UdevDevice) -> c_int {
        let Some(parent) = parent.as_ref() else { return add(search, None) };
        add_parent(search, parent.entry.path.clone())
    }
    // All devices are initialized, so this rule has no effect.
    fn udev_enumerate_add_match_is_initialized(search: *mut UdevSearch) -> c_int { add(search, None) }
    fn udev_enumerate_add_syspath(search: *mut UdevSearch, path: *const c_char) -> c_int {
        let Some(search) = search.as_mut() else { return -libc::EINVAL };
        // If the pattern is null, no rule is added. This is not an error.
        let Some(path) = text(path) else { return 0 };
        if tree().of_path(&path).is_none() {
            return -libc::ENODEV;
        }
        let texts = std::mem::take(&mut search.texts);
        search.find(texts.into_iter().chain([path]));
        0
    }
    fn udev_enumerate_scan_devices(search: *mut UdevSearch) -> c_int {
        let Some(search) = search.as_mut() else { return -libc::EINVAL };
        let rules = std::mem::take(&mut search.rules);
        search.find(tree().entries.iter().filter(|entry| is_found(&rules, entry)).map(|entry| entry.path.clone()));
        search.rules = rules;
        0
    }
    fn udev_enumerate_scan_subsystems(search: *mut UdevSearch) -> c_int {
        let Some(search) = search.as_mut() else { return -libc::EINVAL };
        let rules = std::mem::take(&mut search.rules);
        let found = tree().subsystems.iter().filter(|entry| is_found(&rules, entry));
        search.find(found.map(|entry| entry.path.clone()));
        search.rules = rules;
        0
    }
    fn udev_enumerate_get_list_entry(search: *mut UdevSearch) -> *const UdevList {
        match search.as_ref() {
            Some(search) if !search.found.is_empty() => tree::first(&search.found),
            Some(_) => fails(libc::ENODATA),
            None => fails(libc::EINVAL),
        }
    }

    fn udev_monitor_new_from_netlink(udev: *mut Udev, name: *const c_char) -> *mut UdevMonitor {
        match text(name).as_deref().map(CStr::to_bytes) {
            None | Some(b"udev" | b"kernel") => monitor(udev),
            Some(_) => fails(libc::EINVAL),
        }
    }
    fn udev_monitor_ref(monitor: *mut UdevMonitor) -> *mut UdevMonitor { refer(monitor) }
    fn udev_monitor_unref(monitor: *mut UdevMonitor) -> *mut UdevMonitor { give_back(monitor) }
    fn udev_monitor_get_udev(monitor: *mut UdevMonitor) -> *mut Udev {
        monitor.as_ref().map_or_else(|| fails(libc::EINVAL), |monitor| monitor.udev)
    }
    fn udev_monitor_enable_receiving(monitor: *mut UdevMonitor) -> c_int { error_of_null(monitor, &[]) }
    fn udev_monitor_set_receive_buffer_size(monitor: *mut UdevMonitor, _size: c_int) -> c_int {
        error_of_null(monitor, &[])
    }
    fn udev_monitor_get_fd(monitor: *mut UdevMonitor) -> c_int {
        monitor.as_ref().map_or(-libc::EINVAL, |monitor| monitor.descriptor)
    }
    fn udev_monitor_receive_device(_monitor: *mut UdevMonitor) -> *mut UdevDevice { fails(libc::EAGAIN) }
    fn udev_monitor_filter_add_match_subsystem_devtype(
        monitor: *mut UdevMonitor, subsystem: *const c_char, _kind: *const c_char
    ) -> c_int { error_of_null(monitor, &[subsystem]) }
    fn udev_monitor_filter_add_match_tag(monitor: *mut UdevMonitor, tag: *const c_char) -> c_int {
        error_of_null(monitor, &[tag])
    }
    fn udev_monitor_filter_update(monitor: *mut UdevMonitor) -> c_int { error_of_null(monitor, &[]) }
    fn udev_monitor_filter_remove(monitor: *mut UdevMonitor) -> c_int { error_of_null(monitor, &[]) }

    fn udev_queue_new(udev: *mut Udev) -> *mut UdevQueue { monitor(udev) }
    fn udev_queue_ref(queue: *mut UdevQueue) -> *mut UdevQueue { refer(queue) }
    fn udev_queue_unref(queue: *mut UdevQueue) -> *mut UdevQueue { give_back(queue) }
    fn udev_queue_get_udev(queue: *mut UdevQueue) -> *mut Udev {
        queue.as_ref().map_or_else(|| fails(libc::EINVAL), |queue| queue.udev)
    }
    fn udev_queue_get_fd(queue: *mut UdevQueue) -> c_int {
        queue.as_ref().map_or(-libc::EINVAL, |queue| queue.descriptor)
    }
    fn udev_queue_flush(_queue: *mut UdevQueue) -> c_int { 0 }
    fn udev_queue_get_udev_is_active(_queue: *mut UdevQueue) -> c_int { 1 }
    fn udev_queue_get_queue_is_empty(_queue: *mut UdevQueue) -> c_int { 1 }
    fn udev_queue_get_seqnum_is_finished(_queue: *mut UdevQueue, _number: c_ulonglong) -> c_int { 1 }
    fn udev_queue_get_seqnum_sequence_is_finished(
        _queue: *mut UdevQueue, _start: c_ulonglong, _end: c_ulonglong
    ) -> c_int { 1 }
    fn udev_queue_get_kernel_seqnum(_queue: *mut UdevQueue) -> c_ulonglong { 0 }
    fn udev_queue_get_udev_seqnum(_queue: *mut UdevQueue) -> c_ulonglong { 0 }
    fn udev_queue_get_queued_list_entry(_queue: *mut UdevQueue) -> *const UdevList { fails(libc::ENODATA) }

    // The hardware database has no entries for the emulated devices.
    fn udev_hwdb_new(_udev: *mut Udev) -> *mut c_void { fails(libc::ENOENT) }
    fn udev_hwdb_ref(hwdb: *mut c_void) -> *mut c_void { hwdb }
    fn udev_hwdb_unref(_hwdb: *mut c_void) -> *mut c_void { null_mut() }
    fn udev_hwdb_get_properties_list_entry(
        _hwdb: *mut c_void, _modalias: *const c_char, _flags: c_uint
    ) -> *const UdevList { fails(libc::EINVAL) }

    fn udev_util_encode_string(plain: *const c_char, room: *mut c_char, size: usize) -> c_int {
        let Some(plain) = text(plain).filter(|_| !room.is_null()) else { return -libc::EINVAL };
        let encoded = encoded(plain.to_bytes());
        if encoded.len() >= size {
            return -libc::EINVAL;
        }
        room.cast::<u8>().copy_from_nonoverlapping(encoded.as_ptr(), encoded.len());
        *room.add(encoded.len()) = 0;
        0
    }
}

#[cfg(test)]
mod tests {
    use reconverge_board::Board;

    use super::*;

    fn found(rules: &[SearchRule]) -> Vec<String> {
        let tree = Tree::new(&device::Device::new(Board::named("rv770").unwrap()));
        let found = tree.entries.iter().filter(|entry| is_found(rules, entry));
        found.map(|entry| entry.name().to_str().unwrap().to_owned()).collect()
    }

    #[test]
    fn rules_of_a_search_are_patterns() {
        let subsystem = |name: &CStr| SearchRule::Subsystem(name.to_owned());
        let name = |name: &CStr| SearchRule::Name(name.to_owned());
        // Weston and libinput search with these rules.
        assert_eq!(found(&[subsystem(c"drm"), name(c"card[0-9]*")]), ["card0"]);
        assert_eq!(found(&[subsystem(c"input"), name(c"event*")]), ["event0", "event1"]);
        // Xorg searches for several subsystems at once.
        assert_eq!(found(&[subsystem(c"input"), subsystem(c"tty"), subsystem(c"drm")]).len(), 6);
        let property = SearchRule::Property(c"ID_INPUT_MOUSE".to_owned(), Some(c"1".to_owned()));
        // systemd's rules set the property for the device `event1` and for the parent device `input1`. Therefore, both
        // devices have the property.
        assert_eq!(found(&[property]), ["input1", "event1"]);
        let attribute = SearchRule::Attribute(c"vendor".to_owned(), Some(c"0x1002".to_owned()));
        assert_eq!(found(&[attribute]), ["0000:01:00.0"]);
        assert_eq!(found(&[SearchRule::Tag(c"seat".to_owned()), subsystem(c"drm")]), ["card0"]);
        assert_eq!(found(&[SearchRule::NotSubsystem(c"*".to_owned())]).len(), 0);
    }

    /// The expected results are the results of systemd's libudev 252. Source: `match_tag` and `match_property` in
    /// systemd's `device-enumerator.c`.
    #[test]
    fn all_tags_have_to_fit_and_a_property_has_a_value() {
        let tag = |tag: &CStr| SearchRule::Tag(tag.to_owned());
        assert_eq!(found(&[tag(c"seat"), tag(c"master-of-seat")]), ["card0"]);
        let property =
            |value: Option<&CStr>| SearchRule::Property(c"SUBSYSTEM".to_owned(), value.map(CStr::to_owned));
        assert_eq!((found(&[property(Some(c"*"))]).len(), found(&[property(None)]).len()), (7, 0));
    }

    /// The rule is from systemd's manual page of `udev_util_encode_string`: unsafe bytes become `\x` and two digits.
    #[test]
    fn signs_that_a_name_may_not_have_are_encoded() {
        assert_eq!(encoded(b"A b/c-\\"), b"A\\x20b\\x2fc-\\x5c");
        // In an experiment, systemd's libudev 252 kept valid UTF-8 and encoded all other bytes.
        assert_eq!(encoded(b"\xc3\xa4\xff!"), b"\xc3\xa4\\xff\\x21");
    }
}
