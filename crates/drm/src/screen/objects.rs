//! The objects of the screen, and the properties of these objects. Some properties refer to data, which this module
//! also stores.
//!
//! The objects have the properties that a driver without atomic requests provides. The kernel's `radeon` does not
//! support atomic requests. `nouveau` does not support atomic requests by default.
//!
//! Source: the kernel's `drm_mode.h`, `drm_mode_object.c` and `drm_property.c`.

use crate::buffers::FileId;
use crate::ioctls::*;
use crate::node::State;
use crate::user;

use super::modes::edid;
use super::{CONNECTOR, CRTC, ENCODER, PLANE, Screen, give, refresh};

/// Kinds of objects. (`DRM_MODE_OBJECT_*`)
const OBJECT_CRTC: u32 = 0xcccc_cccc;
const OBJECT_CONNECTOR: u32 = 0xc0c0_c0c0;
const OBJECT_ENCODER: u32 = 0xe0e0_e0e0;
const OBJECT_FRAMEBUFFER: u32 = 0xfbfb_fbfb;
const OBJECT_PLANE: u32 = 0xeeee_eeee;
/// Kind of object in a request that accepts objects of all kinds.
const OBJECT_ANY: u32 = 0;

/// Identifier of the data with the description of the monitor (EDID).
const EDID_BLOB: u32 = 31;
/// Maximum total size in bytes of the data that programs store. In the kernel, only the memory and the range of a
/// signed integer limit this size.
const MOST_DATA: usize = 64 << 20;
/// Maximum number of entries of the data that programs store.
const MOST_BLOBS: usize = 256;

/// Flags of a property. (`DRM_MODE_PROP_*`)
const RANGE: u32 = 1 << 1;
const IMMUTABLE: u32 = 1 << 2;
const ENUM: u32 = 1 << 3;
const BLOB: u32 = 1 << 4;

/// A property.
#[derive(Debug)]
struct Property {
    id: u32,
    name: &'static str,
    flags: u32,
    /// Minimum and maximum of the values, if the property is a range.
    values: &'static [u64],
    /// Names of the values, if the property is an enumeration. The first name belongs to the value 0.
    names: &'static [&'static str],
}

/// Identifier of the property for the power state of the screen.
const DPMS: u32 = 17;
/// Identifier of the property for the state of the connection.
const LINK_STATUS: u32 = 18;

const PROPERTIES: [Property; 5] = [
    Property { id: 16, name: "EDID", flags: BLOB | IMMUTABLE, values: &[], names: &[] },
    Property {
        id: DPMS,
        name: "DPMS",
        flags: ENUM,
        values: &[],
        names: &["On", "Standby", "Suspend", "Off"],
    },
    Property { id: LINK_STATUS, name: "link-status", flags: ENUM, values: &[], names: &["Good", "Bad"] },
    Property { id: 19, name: "non-desktop", flags: RANGE | IMMUTABLE, values: &[0, 1], names: &[] },
    Property {
        id: 20,
        name: "type",
        flags: ENUM | IMMUTABLE,
        values: &[],
        names: &["Overlay", "Primary", "Cursor"],
    },
];

fn property(id: u32) -> Result<&'static Property, Errno> {
    PROPERTIES.iter().find(|property| property.id == id).ok_or(Errno(libc::ENOENT))
}

/// Returns the properties of an object and their values.
///
/// # Errors
/// `ENOENT` if the object does not exist or is of another kind. `EINVAL` if objects of this kind have no properties.
fn properties(screen: &Screen, kind: u32, id: u32) -> Result<Vec<(u32, u64)>, Errno> {
    let (found, properties) = match id {
        CRTC => (OBJECT_CRTC, vec![]),
        CONNECTOR => {
            (OBJECT_CONNECTOR, vec![(16, EDID_BLOB.into()), (DPMS, screen.power), (LINK_STATUS, 0), (19, 0)])
        }
        // The value 1 means that the plane is a primary plane.
        PLANE => (OBJECT_PLANE, vec![(20, 1)]),
        ENCODER if [OBJECT_ANY, OBJECT_ENCODER].contains(&kind) => return Err(Errno(libc::EINVAL)),
        _ if [OBJECT_ANY, OBJECT_FRAMEBUFFER].contains(&kind) && screen.framebuffers.contains_key(&id) => {
            return Err(Errno(libc::EINVAL));
        }
        _ => return Err(Errno(libc::ENOENT)),
    };
    if [OBJECT_ANY, found].contains(&kind) { Ok(properties) } else { Err(Errno(libc::ENOENT)) }
}

/// Stores the properties of the connector in the argument of a request.
pub(super) fn of_connector(screen: &Screen, asked: &mut ModeConnector) -> Result<(), Errno> {
    let properties = properties(screen, OBJECT_CONNECTOR, CONNECTOR)?;
    give_both(&properties, asked.properties, asked.values, &mut asked.property_count)
}

/// Stores the number of properties, and as many identifiers and values as the program has room for.
fn give_both(properties: &[(u32, u64)], numbers: u64, values: u64, count: &mut u32) -> Result<(), Errno> {
    let (ids, contents): (Vec<u32>, Vec<u64>) = properties.iter().copied().unzip();
    let mut room = *count;
    give(&ids, numbers, &mut room)?;
    give(&contents, values, count)
}

/// `OBJ_GETPROPERTIES`
pub(super) fn list(screen: &Screen, asked: &mut ModeObjectProperties) -> Result<(), Errno> {
    let properties = properties(screen, asked.kind, asked.object)?;
    give_both(&properties, asked.properties, asked.values, &mut asked.count)
}

/// `GETPROPERTY`
pub(super) fn describe(asked: &mut ModeProperty) -> Result<(), Errno> {
    let Property { name, flags, values, names, .. } = property(asked.property)?;
    (asked.flags, asked.name) = (*flags, letters(name));
    if *flags & ENUM != 0 {
        let named: Vec<ModePropertyName> =
            (0..).zip(*names).map(|(value, name)| ModePropertyName { value, name: letters(name) }).collect();
        let numbers: Vec<u64> = (0..names.len() as u64).collect();
        give(&numbers, asked.values, &mut asked.value_count)?;
        give(&named, asked.names, &mut asked.name_count)
    } else {
        asked.name_count = 0;
        give(values, asked.values, &mut asked.value_count)
    }
}

fn letters(name: &str) -> [u8; 32] {
    let mut letters = [0; 32];
    letters[..name.len()].copy_from_slice(name.as_bytes());
    letters
}

/// Sets a property of an object. `OBJ_SETPROPERTY` uses this function for all objects. `SETPROPERTY` uses this function
/// for the connector.
///
/// # Errors
/// `ENOENT` if the object is unknown or does not have the property. `EINVAL` if the property is fixed or does not have
/// the value.
pub(super) fn set(state: &mut State, [kind, object]: [u32; 2], id: u32, value: u64) -> Result<(), Errno> {
    let known = properties(&state.screen, kind, object)?;
    known.iter().find(|(known, _)| *known == id).ok_or(Errno(libc::ENOENT))?;
    let Property { flags, names, .. } = property(id)?;
    if flags & IMMUTABLE != 0 || value >= names.len() as u64 {
        return Err(Errno(libc::EINVAL));
    }
    if id == DPMS {
        let was_seen = state.screen.is_seen();
        state.screen.power = value;
        if state.screen.is_seen() != was_seen {
            refresh(state);
        }
    }
    Ok(())
}

/// `SETPROPERTY`
pub(super) fn set_of_connector(state: &mut State, asked: &ModeConnectorProperty) -> Result<(), Errno> {
    set(state, [OBJECT_CONNECTOR, asked.connector], asked.property, asked.value)
}

/// `GETPROPBLOB`
pub(super) fn data(screen: &Screen, asked: &mut ModeBlob) -> Result<(), Errno> {
    let edid = edid();
    let data = match asked.blob {
        EDID_BLOB => &edid[..],
        other => &screen.blobs.get(&other).ok_or(Errno(libc::ENOENT))?.1,
    };
    if asked.length as usize == data.len() {
        user::write_list(asked.data, data)?;
    }
    asked.length = data.len() as u32;
    Ok(())
}

/// `CREATEPROPBLOB`: stores data until the program deletes the data.
///
/// # Errors
/// `EINVAL` if the length is zero or negative. `ENOMEM` if there are too many data. `EFAULT` if the data cannot be
/// read.
pub(super) fn keep(state: &mut State, asked: &mut ModeNewBlob) -> Result<(), Errno> {
    let length = usize::try_from(asked.length as i32).ok().filter(|length| *length > 0);
    let length = length.ok_or(Errno(libc::EINVAL))?;
    let kept: usize = state.screen.blobs.values().map(|(_, data)| data.len()).sum();
    if state.screen.blobs.len() >= MOST_BLOBS || kept + length > MOST_DATA {
        return Err(Errno(libc::ENOMEM));
    }
    let data = user::read_list(asked.data, length)?;
    asked.blob = state.screen.number();
    state.screen.blobs.insert(asked.blob, (state.buffers.file(), data));
    Ok(())
}

/// `DESTROYPROPBLOB`
///
/// # Errors
/// `ENOENT` if the data do not exist. `EPERM` if another open file has stored the data.
pub(super) fn drop_data(screen: &mut Screen, file: FileId, blob: u32) -> Result<(), Errno> {
    match screen.blobs.get(&blob) {
        None if blob == EDID_BLOB => Err(Errno(libc::EPERM)),
        None => Err(Errno(libc::ENOENT)),
        Some((owner, _)) if *owner != file => Err(Errno(libc::EPERM)),
        Some(_) => {
            screen.blobs.remove(&blob);
            Ok(())
        }
    }
}
