//! The requests of the graphics devices: numbers and layouts.
//!
//! Source: the kernel's `include/uapi/drm/drm.h`, `radeon_drm.h` and `nouveau_drm.h`. A request is one word:
//!
//! ```text
//!  31 30 | 29    16 | 15   8 | 7    0
//!  r/w   |   size   |  'd'   | number
//! ```
//!
//! `number` identifies the request. `size` is the size of the argument. A program may pass a longer argument than the
//! layout in this file.

use std::ffi::{c_int, c_ulong, c_void};
use std::fmt;

use crate::user;

/// An error of a request: a value of `errno`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Errno(pub(crate) c_int);

/// An `ioctl` request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Request(pub(crate) c_ulong);

impl Request {
    /// Returns whether the request is for one of the graphics devices.
    pub(crate) fn of_drm(self) -> bool {
        (self.0 >> 8) & 0xff == c_ulong::from(b'd')
    }

    /// Returns whether the request is for the file of a shared buffer.
    pub(crate) fn of_buffers(self) -> bool {
        (self.0 >> 8) & 0xff == c_ulong::from(b'b')
    }

    /// Returns the request number.
    pub(crate) fn number(self) -> u8 {
        (self.0 & 0xff) as u8
    }

    /// Returns the size of the argument in bytes.
    fn size(self) -> usize {
        (self.0 >> 16) as usize & 0x3fff
    }

    /// Returns two flags. The first flag is set if the program passes data in the argument. The second flag is set if
    /// the request returns data in the argument. (`_IOC_WRITE`, `_IOC_READ`)
    fn ways(self) -> [bool; 2] {
        [30, 31].map(|bit| self.0 >> bit & 1 != 0)
    }

    /// Reads the argument, calls `change` with the argument, and writes the argument back. The argument is written back
    /// even if `change` fails, as in the kernel.
    ///
    /// If the program passes no data in the argument, `change` gets zeros. If the request returns no data, this
    /// function does not write the argument back.
    ///
    /// # Errors
    /// `EFAULT` if the argument cannot be read or written. `EINVAL` if the argument is too short. Otherwise, the error
    /// of `change`.
    pub(crate) fn exchange<T: Plain>(
        self,
        argument: *mut c_void,
        change: impl FnOnce(&mut T) -> Result<(), Errno>,
    ) -> Result<(), Errno> {
        if argument.is_null() {
            return Err(Errno(libc::EFAULT));
        }
        if self.size() < size_of::<T>() {
            return Err(Errno(libc::EINVAL));
        }
        let address = argument.expose_provenance() as u64;
        let [goes, comes] = self.ways();
        let mut value = if goes { user::read(address)? } else { T::zeroed() };
        let changed = change(&mut value);
        if comes {
            user::write(address, &value)?;
        }
        changed
    }
}

impl fmt::Display for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match NAMES.iter().find(|(number, _)| *number == self.number()) {
            Some((_, name)) => f.write_str(name),
            None => write!(f, "ioctl {:#04x}", self.number()),
        }
    }
}

/// A type for which all bit patterns are valid.
///
/// # Safety
/// The type must consist of integers only, without padding between the integers.
pub(crate) unsafe trait Plain: Copy {
    /// Returns the value whose bytes are all zero.
    fn zeroed() -> Self {
        // SAFETY: every bit pattern is a valid value of the type.
        unsafe { std::mem::zeroed() }
    }
}

// SAFETY: the type is an integer type, and has no padding.
unsafe impl Plain for u8 {}
// SAFETY: the type is an integer type, and has no padding.
unsafe impl Plain for u16 {}
// SAFETY: the type is an integer type, and has no padding.
unsafe impl Plain for u32 {}
// SAFETY: the type is an integer type, and has no padding.
unsafe impl Plain for u64 {}

/// Defines request numbers and their names.
macro_rules! requests {
    ($($(#[$doc:meta])* $name:ident = $number:literal, $spelled:literal;)*) => {
        $($(#[$doc])* pub(crate) const $name: u8 = $number;)*
        /// Names of the known requests.
        const NAMES: &[(u8, &str)] = &[$(($number, $spelled)),*];
    };
}

// Numbers below 0x40, and numbers of at least 0xa0, are requests of all drivers. Each number from 0x40 to 0x9f is a
// request of a single driver.
requests! {
    /// Returns the name and the version of the driver.
    VERSION           = 0x00, "VERSION";
    /// Closes a handle.
    GEM_CLOSE         = 0x09, "GEM_CLOSE";
    /// Reads a capability of the driver.
    GET_CAP           = 0x0c, "GET_CAP";
    /// Returns the bus id of the board.
    GET_UNIQUE        = 0x01, "GET_UNIQUE";
    /// Returns a number. Another program can pass this number to `AUTH_MAGIC`, and thus allow this program to draw.
    GET_MAGIC         = 0x02, "GET_MAGIC";
    /// Sets the interface version for which the program is written.
    SET_VERSION       = 0x07, "SET_VERSION";
    /// Sets a capability of the program.
    SET_CLIENT_CAP    = 0x0d, "SET_CLIENT_CAP";
    /// Allows the program with this number to draw.
    AUTH_MAGIC        = 0x11, "AUTH_MAGIC";
    /// Exports a buffer: returns a descriptor of the buffer's file.
    PRIME_HANDLE_TO_FD = 0x2d, "PRIME_HANDLE_TO_FD";
    /// Imports a file as a buffer: returns a handle of the buffer.
    PRIME_FD_TO_HANDLE = 0x2e, "PRIME_FD_TO_HANDLE";
    /// Waits until the frame count reaches a value.
    WAIT_VBLANK       = 0x3a, "WAIT_VBLANK";
    /// Returns the frame count.
    CRTC_GET_SEQUENCE   = 0x3b, "CRTC_GET_SEQUENCE";
    /// Queues an event for the time at which the frame count reaches a value.
    CRTC_QUEUE_SEQUENCE = 0x3c, "CRTC_QUEUE_SEQUENCE";
    /// Acquires control of the screen.
    SET_MASTER        = 0x1e, "SET_MASTER";
    /// Releases control of the screen.
    DROP_MASTER       = 0x1f, "DROP_MASTER";
    /// Lists the outputs of the board.
    MODE_GETRESOURCES = 0xa0, "MODE_GETRESOURCES";
    /// Returns the mode and the framebuffer of a screen.
    MODE_GETCRTC      = 0xa1, "MODE_GETCRTC";
    /// Sets the mode and the framebuffer of a screen.
    MODE_SETCRTC      = 0xa2, "MODE_SETCRTC";
    /// Sets or moves the cursor.
    MODE_CURSOR       = 0xa3, "MODE_CURSOR";
    /// Returns the gamma table.
    MODE_GETGAMMA     = 0xa4, "MODE_GETGAMMA";
    /// Sets the gamma table.
    MODE_SETGAMMA     = 0xa5, "MODE_SETGAMMA";
    /// Describes an encoder.
    MODE_GETENCODER   = 0xa6, "MODE_GETENCODER";
    /// Describes a connector and the modes of its screen.
    MODE_GETCONNECTOR = 0xa7, "MODE_GETCONNECTOR";
    /// Describes a property.
    MODE_GETPROPERTY  = 0xaa, "MODE_GETPROPERTY";
    /// Sets a property of a connector.
    MODE_SETPROPERTY  = 0xab, "MODE_SETPROPERTY";
    /// Returns the data to which a property refers.
    MODE_GETPROPBLOB  = 0xac, "MODE_GETPROPBLOB";
    /// Describes a framebuffer.
    MODE_GETFB        = 0xad, "MODE_GETFB";
    /// Creates a framebuffer.
    MODE_ADDFB        = 0xae, "MODE_ADDFB";
    /// Removes a framebuffer.
    MODE_RMFB         = 0xaf, "MODE_RMFB";
    /// Shows another framebuffer.
    MODE_PAGE_FLIP    = 0xb0, "MODE_PAGE_FLIP";
    /// Reports that a framebuffer has changed.
    MODE_DIRTYFB      = 0xb1, "MODE_DIRTYFB";
    /// Creates a buffer of plain pixels ("dumb buffer").
    MODE_CREATE_DUMB  = 0xb2, "MODE_CREATE_DUMB";
    /// Returns the `mmap` offset of a dumb buffer.
    MODE_MAP_DUMB     = 0xb3, "MODE_MAP_DUMB";
    /// Closes a dumb buffer.
    MODE_DESTROY_DUMB = 0xb4, "MODE_DESTROY_DUMB";
    /// Lists the planes of the board.
    MODE_GETPLANERESOURCES  = 0xb5, "MODE_GETPLANERESOURCES";
    /// Describes a plane.
    MODE_GETPLANE           = 0xb6, "MODE_GETPLANE";
    /// Shows a framebuffer on a plane.
    MODE_SETPLANE           = 0xb7, "MODE_SETPLANE";
    /// Creates a framebuffer with a format.
    MODE_ADDFB2             = 0xb8, "MODE_ADDFB2";
    /// Lists the properties of an object.
    MODE_OBJ_GETPROPERTIES  = 0xb9, "MODE_OBJ_GETPROPERTIES";
    /// Sets a property of an object.
    MODE_OBJ_SETPROPERTY    = 0xba, "MODE_OBJ_SETPROPERTY";
    /// Sets or moves the cursor and its hot spot.
    MODE_CURSOR2            = 0xbb, "MODE_CURSOR2";
    /// Changes several objects at once.
    MODE_ATOMIC             = 0xbc, "MODE_ATOMIC";
    /// Stores data for a property.
    MODE_CREATEPROPBLOB     = 0xbd, "MODE_CREATEPROPBLOB";
    /// Deletes data that [`MODE_CREATEPROPBLOB`] stored.
    MODE_DESTROYPROPBLOB    = 0xbe, "MODE_DESTROYPROPBLOB";
    /// Describes a framebuffer and its format.
    MODE_GETFB2             = 0xce, "MODE_GETFB2";
    /// Removes a framebuffer. The screen stays on.
    MODE_CLOSEFB            = 0xd0, "MODE_CLOSEFB";
    /// Returns the sizes of the memory domains.
    GEM_INFO          = 0x5c, "RADEON_GEM_INFO";
    /// Creates a buffer.
    GEM_CREATE        = 0x5d, "RADEON_GEM_CREATE";
    /// Returns the `mmap` offset of a buffer.
    GEM_MMAP          = 0x5e, "RADEON_GEM_MMAP";
    /// Moves a buffer to another memory domain.
    GEM_SET_DOMAIN    = 0x63, "RADEON_GEM_SET_DOMAIN";
    /// Waits until the chip no longer uses a buffer.
    GEM_WAIT_IDLE     = 0x64, "RADEON_GEM_WAIT_IDLE";
    /// Submits commands.
    CS                = 0x66, "RADEON_CS";
    /// Returns a property of the chip.
    INFO              = 0x67, "RADEON_INFO";
    /// Stores tiling flags with a buffer.
    GEM_SET_TILING    = 0x68, "RADEON_GEM_SET_TILING";
    /// Returns the tiling flags of a buffer.
    GEM_GET_TILING    = 0x69, "RADEON_GEM_GET_TILING";
    /// Returns whether a buffer is in use.
    GEM_BUSY          = 0x6a, "RADEON_GEM_BUSY";
    /// Reads or sets the memory domain in which a buffer was created.
    GEM_OP            = 0x6c, "RADEON_GEM_OP";
    /// Returns a property of the chip.
    NOUVEAU_GETPARAM          = 0x40, "NOUVEAU_GETPARAM";
    /// Creates a channel, which accepts submissions.
    NOUVEAU_CHANNEL_ALLOC     = 0x42, "NOUVEAU_CHANNEL_ALLOC";
    /// Deletes a channel.
    NOUVEAU_CHANNEL_FREE      = 0x43, "NOUVEAU_CHANNEL_FREE";
    /// Creates an object of a class on a channel.
    NOUVEAU_GROBJ_ALLOC       = 0x44, "NOUVEAU_GROBJ_ALLOC";
    /// Creates a notifier on a channel.
    NOUVEAU_NOTIFIEROBJ_ALLOC = 0x45, "NOUVEAU_NOTIFIEROBJ_ALLOC";
    /// Deletes an object.
    NOUVEAU_GPUOBJ_FREE       = 0x46, "NOUVEAU_GPUOBJ_FREE";
    /// Calls a method of an object.
    NOUVEAU_NVIF              = 0x47, "NOUVEAU_NVIF";
    /// Creates a buffer.
    NOUVEAU_GEM_NEW           = 0x80, "NOUVEAU_GEM_NEW";
    /// Submits commands.
    NOUVEAU_GEM_PUSHBUF       = 0x81, "NOUVEAU_GEM_PUSHBUF";
    /// Waits until the chip no longer uses a buffer.
    NOUVEAU_GEM_CPU_PREP      = 0x82, "NOUVEAU_GEM_CPU_PREP";
    /// Ends an access that [`NOUVEAU_GEM_CPU_PREP`] has begun.
    NOUVEAU_GEM_CPU_FINI      = 0x83, "NOUVEAU_GEM_CPU_FINI";
    /// Describes a buffer.
    NOUVEAU_GEM_INFO          = 0x84, "NOUVEAU_GEM_INFO";
}

/// A request to the file of a buffer. The request marks the beginning or the end of an access by the processor.
/// (`dma-buf.h`)
pub(crate) const DMA_BUF_SYNC: u8 = 0;

/// Defines structures of the kernel and checks their sizes.
macro_rules! layouts {
    ($($(#[$doc:meta])* $name:ident, $size:literal { $($(#[$note:meta])* $field:ident: $kind:ty,)* })*) => {$(
        $(#[$doc])*
        #[repr(C)]
        #[derive(Clone, Copy, Debug, Default)]
        pub(crate) struct $name { $($(#[$note])* pub(crate) $field: $kind,)* }
        const _: () = assert!(size_of::<$name>() == $size, "as in the kernel's header");
        const _: () = assert!(0 $(+ size_of::<$kind>())* == $size, "no bytes between the fields");
        // SAFETY: the structure consists of integers only. The assertion above checks that the structure has no
        // padding.
        unsafe impl Plain for $name {}
    )*};
}

// A field with the name `padding` is a gap in the C structure between two fields or after the last field.
layouts! {
    /// The argument of [`VERSION`]: three numbers, and the sizes and addresses of three buffers. Each buffer receives a
    /// string.
    Version, 64 {
        major: i32, minor: i32, patch: i32, padding: u32,
        name_length: u64, name: u64, date_length: u64, date: u64, description_length: u64, description: u64,
    }
    /// The argument of [`GEM_CLOSE`].
    GemClose, 8 { handle: u32, padding: u32, }
    /// The argument of [`GET_CAP`].
    GetCap, 16 { capability: u64, value: u64, }
    /// A mode of a screen. The clock is in kHz. `horizontal` and `vertical` begin with the same four values: the number
    /// of visible pixels, the start and the end of the sync pulse, and the total number of pixels.
    ModeInfo, 68 {
        clock: u32, horizontal: [u16; 5], vertical: [u16; 5], refresh: u32, flags: u32, kind: u32, name: [u8; 32],
    }
    /// The argument of [`MODE_GETRESOURCES`]: the addresses and the lengths of lists of identifiers.
    ModeResources, 64 {
        framebuffers: u64, crtcs: u64, connectors: u64, encoders: u64,
        framebuffer_count: u32, crtc_count: u32, connector_count: u32, encoder_count: u32,
        width: [u32; 2], height: [u32; 2],
    }
    /// The argument of [`MODE_GETCRTC`] and of [`MODE_SETCRTC`].
    ModeCrtc, 104 {
        connectors: u64, connector_count: u32, crtc: u32, framebuffer: u32, place: [u32; 2], gamma_size: u32,
        valid: u32, mode: ModeInfo,
    }
    /// The argument of [`MODE_GETENCODER`].
    ModeEncoder, 20 { encoder: u32, kind: u32, crtc: u32, crtcs: u32, clones: u32, }
    /// The argument of [`MODE_GETCONNECTOR`].
    ModeConnector, 80 {
        encoders: u64, modes: u64, properties: u64, values: u64, mode_count: u32, property_count: u32,
        encoder_count: u32, encoder: u32, connector: u32, kind: u32, number: u32, connection: u32,
        millimetres: [u32; 2], subpixel: u32, padding: u32,
    }
    /// The argument of [`MODE_ADDFB`].
    ModeFramebuffer, 28 {
        framebuffer: u32, width: u32, height: u32, pitch: u32, bits: u32, depth: u32, handle: u32,
    }
    /// The argument of [`MODE_ADDFB2`]. Each of the four planes has a handle, a pitch, an offset and a modifier.
    ModeFramebuffer2, 104 {
        framebuffer: u32, width: u32, height: u32, format: u32, flags: u32, handles: [u32; 4], pitches: [u32; 4],
        offsets: [u32; 4], padding: u32, modifiers: [u64; 4],
    }
    /// The argument of [`MODE_RMFB`].
    ModeFramebufferId, 4 { framebuffer: u32, }
    /// The argument of [`MODE_DIRTYFB`]: the rectangles that have changed.
    ModeDirty, 24 { framebuffer: u32, flags: u32, color: u32, count: u32, rectangles: u64, }
    /// An event of the screen, in the form in which a program reads the event from the node. The event has one of two
    /// forms. `drm_event_vblank` has the time in seconds and microseconds, the frame count and the screen.
    /// `drm_event_crtc_sequence` has the time in nanoseconds and the frame count, each in 64 bits.
    ScreenEvent, 32 { kind: u32, length: u32, user: u64, time: [u32; 2], place: [u32; 2], }
    /// The argument of [`PRIME_HANDLE_TO_FD`] and of [`PRIME_FD_TO_HANDLE`].
    PrimeHandle, 12 { handle: u32, flags: u32, descriptor: i32, }
    /// The argument of [`GET_UNIQUE`]: the size and the address of the buffer. In the reply, the size is the length of
    /// the string in the buffer.
    Unique, 16 { length: u64, text: u64, }
    /// The argument of [`GET_MAGIC`] and of [`AUTH_MAGIC`].
    Magic, 4 { magic: u32, }
    /// The argument of [`SET_VERSION`]: the versions of the interface and of the driver, each as a major and a minor
    /// number. -1 means any version.
    SetVersion, 16 { interface: [i32; 2], driver: [i32; 2], }
    /// The argument of [`SET_CLIENT_CAP`].
    ClientCap, 16 { capability: u64, value: u64, }
    /// The argument of [`WAIT_VBLANK`]. In the reply, `user` is the time in seconds.
    WaitVblank, 24 { kind: u32, sequence: u32, user: u64, micros: u64, }
    /// The argument of [`CRTC_GET_SEQUENCE`].
    CrtcSequence, 24 { crtc: u32, active: u32, sequence: u64, nanos: u64, }
    /// The argument of [`CRTC_QUEUE_SEQUENCE`].
    QueueSequence, 24 { crtc: u32, flags: u32, sequence: u64, user: u64, }
    /// The argument of [`MODE_CURSOR`]. Coordinates may be negative.
    ModeCursor, 28 { flags: u32, crtc: u32, place: [u32; 2], size: [u32; 2], handle: u32, }
    /// The argument of [`MODE_CURSOR2`].
    ModeCursor2, 36 { flags: u32, crtc: u32, place: [u32; 2], size: [u32; 2], handle: u32, hot: [u32; 2], }
    /// The argument of [`MODE_GETGAMMA`] and of [`MODE_SETGAMMA`]: addresses of tables with 16-bit entries.
    ModeGamma, 32 { crtc: u32, size: u32, tables: [u64; 3], }
    /// The argument of [`MODE_GETPROPERTY`]. The lists are the values of the property and the names of the values.
    ModeProperty, 64 {
        values: u64, names: u64, property: u32, flags: u32, name: [u8; 32], value_count: u32, name_count: u32,
    }
    /// A value of a property with its name.
    ModePropertyName, 40 { value: u64, name: [u8; 32], }
    /// The argument of [`MODE_SETPROPERTY`].
    ModeConnectorProperty, 16 { value: u64, property: u32, connector: u32, }
    /// The argument of [`MODE_OBJ_GETPROPERTIES`].
    ModeObjectProperties, 32 { properties: u64, values: u64, count: u32, object: u32, kind: u32, padding: u32, }
    /// The argument of [`MODE_OBJ_SETPROPERTY`].
    ModeObjectProperty, 24 { value: u64, property: u32, object: u32, kind: u32, padding: u32, }
    /// The argument of [`MODE_GETPROPBLOB`].
    ModeBlob, 16 { blob: u32, length: u32, data: u64, }
    /// The argument of [`MODE_CREATEPROPBLOB`].
    ModeNewBlob, 16 { data: u64, length: u32, blob: u32, }
    /// The argument of [`MODE_DESTROYPROPBLOB`].
    ModeBlobId, 4 { blob: u32, }
    /// The argument of [`MODE_GETPLANERESOURCES`].
    ModePlanes, 16 { planes: u64, count: u32, padding: u32, }
    /// The argument of [`MODE_GETPLANE`].
    ModePlane, 32 {
        plane: u32, crtc: u32, framebuffer: u32, crtcs: u32, gamma_size: u32, format_count: u32, formats: u64,
    }
    /// The argument of [`MODE_SETPLANE`]: a rectangle of the screen in pixels, and a rectangle of the framebuffer in
    /// units of 1/65536 of a pixel. Each rectangle has a position, a height and a width.
    ModeSetPlane, 48 {
        plane: u32, crtc: u32, framebuffer: u32, flags: u32, place: [u32; 2], size: [u32; 2], from: [u32; 2],
        from_height: u32, from_width: u32,
    }
    /// The argument of [`MODE_CLOSEFB`].
    ModeCloseFramebuffer, 8 { framebuffer: u32, padding: u32, }
    /// The argument of [`MODE_PAGE_FLIP`].
    PageFlip, 24 { crtc: u32, framebuffer: u32, flags: u32, padding: u32, user: u64, }
    /// The argument of [`MODE_CREATE_DUMB`].
    DumbCreate, 32 { height: u32, width: u32, bits: u32, flags: u32, handle: u32, pitch: u32, size: u64, }
    /// The argument of [`MODE_MAP_DUMB`].
    DumbMap, 16 { handle: u32, padding: u32, offset: u64, }
    /// The argument of [`MODE_DESTROY_DUMB`].
    DumbDestroy, 4 { handle: u32, }
    /// The argument of [`GEM_INFO`]: sizes in bytes.
    GemInfo, 24 { gart: u64, vram: u64, vram_visible: u64, }
    /// The argument of [`GEM_CREATE`].
    GemCreate, 32 { size: u64, alignment: u64, handle: u32, domain: u32, flags: u32, padding: u32, }
    /// The argument of [`GEM_MMAP`].
    GemMmap, 32 { handle: u32, padding: u32, offset: u64, size: u64, address: u64, }
    /// The argument of [`GEM_SET_DOMAIN`].
    GemDomain, 12 { handle: u32, read: u32, write: u32, }
    /// The argument of [`GEM_WAIT_IDLE`], and of [`GEM_BUSY`].
    GemBusy, 8 { handle: u32, domain: u32, }
    /// The argument of [`GEM_SET_TILING`] and of [`GEM_GET_TILING`].
    GemTiling, 12 { handle: u32, flags: u32, pitch: u32, }
    /// The argument of [`GEM_OP`].
    GemOp, 16 { handle: u32, operation: u32, value: u64, }
    /// The argument of [`INFO`]: the property, and the address of the result.
    Info, 16 { request: u32, padding: u32, value: u64, }
    /// The argument of [`CS`]: the number of chunks, and the address of a list. The list contains the addresses of the
    /// chunks.
    Submit, 32 { chunks: u32, id: u32, addresses: u64, gart_limit: u64, vram_limit: u64, }
    /// A chunk of a submission: the kind, the length in words, and the address of the words.
    Chunk, 16 { id: u32, words: u32, address: u64, }
    /// The argument of [`NOUVEAU_GETPARAM`].
    GetParam, 16 { parameter: u64, value: u64, }
    /// The argument of [`NOUVEAU_CHANNEL_ALLOC`].
    ChannelAlloc, 88 {
        framebuffer: u32, system: u32, channel: i32, domains: u32, notifier: u32, subchannels: [u32; 16], count: u32,
    }
    /// The argument of [`NOUVEAU_CHANNEL_FREE`].
    ChannelFree, 4 { channel: i32, }
    /// The argument of [`NOUVEAU_GROBJ_ALLOC`].
    ObjectAlloc, 12 { channel: i32, handle: u32, class: i32, }
    /// The argument of [`NOUVEAU_NOTIFIEROBJ_ALLOC`].
    NotifierAlloc, 16 { channel: u32, handle: u32, size: u32, offset: u32, }
    /// The argument of [`NOUVEAU_GPUOBJ_FREE`].
    ObjectFree, 8 { channel: i32, handle: u32, }
    /// The first fields of the argument of [`NOUVEAU_NVIF`].
    NvifCall, 24 { version: u8, kind: u8, padding: [u8; 4], owner: u8, route: u8, token: u64, object: u64, }
    /// A call of [`NOUVEAU_NVIF`] that lists the classes of an object. The list follows the structure. `count` is the
    /// capacity of the list.
    NvifClasses, 32 { call: [u64; 3], version: u8, count: u8, padding: [u8; 6], }
    /// A call of [`NOUVEAU_NVIF`] that creates an object. The words of the object follow the structure.
    NvifNew, 56 {
        call: [u64; 3], version: u8, padding: [u8; 6], route: u8, token: u64, object: u64, handle: u32, class: i32,
    }
    /// A call of [`NOUVEAU_NVIF`] that describes a device.
    NvifDeviceInfo, 136 {
        call: [u64; 3], call_version: u8, method: u8, call_padding: [u8; 6],
        version: u8, platform: u8, chipset: u16, revision: u8, family: u8, padding: [u8; 2], ram: u64, ram_user: u64,
        chip: [u8; 16], name: [[u8; 16]; 4],
    }
    /// The argument of [`NOUVEAU_GEM_INFO`].
    NouveauBuffer, 40 {
        handle: u32, domain: u32, size: u64, offset: u64, map: u64, tile_mode: u32, tile_flags: u32,
    }
    /// The argument of [`NOUVEAU_GEM_NEW`].
    NouveauNew, 48 { buffer: [u32; 10], channel_hint: u32, alignment: u32, }
    /// The argument of [`NOUVEAU_GEM_CPU_PREP`].
    CpuPrep, 8 { handle: u32, flags: u32, }
    /// The argument of [`NOUVEAU_GEM_CPU_FINI`].
    CpuFini, 4 { handle: u32, }
    /// The argument of [`NOUVEAU_GEM_PUSHBUF`]: lengths and addresses of the lists of buffers, relocations and command
    /// segments.
    Pushbuf, 64 {
        channel: u32, buffer_count: u32, buffers: u64, relocation_count: u32, segment_count: u32, relocations: u64,
        segments: u64, suffix: [u32; 2], vram_available: u64, gart_available: u64,
    }
    /// A buffer of a [`Pushbuf`], with the domain and the offset that the driver presumes for the buffer.
    PushBuffer, 40 {
        private: u64, handle: u32, read: u32, write: u32, valid: u32, presumed: u32, presumed_domain: u32,
        presumed_offset: u64,
    }
    /// A relocation describes a word in a buffer of a [`Pushbuf`]. The word holds a part of the address of another
    /// buffer.
    PushRelocation, 28 {
        into: u32, offset: u32, buffer: u32, flags: u32, data: u32, if_vram: u32, if_system: u32,
    }
    /// A segment of commands of a [`Pushbuf`].
    PushSegment, 24 { buffer: u32, padding: u32, offset: u64, length: u64, }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The expected values are the request words that the kernel's headers define.
    #[test]
    fn requests_are_taken_apart() {
        for (word, number, size, name) in [
            (0xc040_6400, VERSION, size_of::<Version>(), "VERSION"),
            (0x4008_6409, GEM_CLOSE, size_of::<GemClose>(), "GEM_CLOSE"),
            (0xc010_640c, GET_CAP, size_of::<GetCap>(), "GET_CAP"),
            (0xc018_645c, GEM_INFO, size_of::<GemInfo>(), "RADEON_GEM_INFO"),
            (0xc020_645d, GEM_CREATE, size_of::<GemCreate>(), "RADEON_GEM_CREATE"),
            (0xc020_645e, GEM_MMAP, size_of::<GemMmap>(), "RADEON_GEM_MMAP"),
            (0xc00c_6463, GEM_SET_DOMAIN, size_of::<GemDomain>(), "RADEON_GEM_SET_DOMAIN"),
            (0x4008_6464, GEM_WAIT_IDLE, size_of::<GemBusy>(), "RADEON_GEM_WAIT_IDLE"),
            (0xc020_6466, CS, size_of::<Submit>(), "RADEON_CS"),
            (0xc010_6467, INFO, size_of::<Info>(), "RADEON_INFO"),
            (0xc00c_6468, GEM_SET_TILING, size_of::<GemTiling>(), "RADEON_GEM_SET_TILING"),
            (0xc00c_6469, GEM_GET_TILING, size_of::<GemTiling>(), "RADEON_GEM_GET_TILING"),
            (0xc008_646a, GEM_BUSY, size_of::<GemBusy>(), "RADEON_GEM_BUSY"),
            (0xc010_646c, GEM_OP, size_of::<GemOp>(), "RADEON_GEM_OP"),
            (0xc040_64a0, MODE_GETRESOURCES, size_of::<ModeResources>(), "MODE_GETRESOURCES"),
            (0xc068_64a2, MODE_SETCRTC, size_of::<ModeCrtc>(), "MODE_SETCRTC"),
            (0xc014_64a6, MODE_GETENCODER, size_of::<ModeEncoder>(), "MODE_GETENCODER"),
            (0xc050_64a7, MODE_GETCONNECTOR, size_of::<ModeConnector>(), "MODE_GETCONNECTOR"),
            (0xc01c_64ae, MODE_ADDFB, size_of::<ModeFramebuffer>(), "MODE_ADDFB"),
            (0xc004_64af, MODE_RMFB, size_of::<ModeFramebufferId>(), "MODE_RMFB"),
            (0xc018_64b0, MODE_PAGE_FLIP, size_of::<PageFlip>(), "MODE_PAGE_FLIP"),
            (0xc020_64b2, MODE_CREATE_DUMB, size_of::<DumbCreate>(), "MODE_CREATE_DUMB"),
            (0xc010_64b3, MODE_MAP_DUMB, size_of::<DumbMap>(), "MODE_MAP_DUMB"),
            (0xc004_64b4, MODE_DESTROY_DUMB, size_of::<DumbDestroy>(), "MODE_DESTROY_DUMB"),
            (0x4010_640d, SET_CLIENT_CAP, size_of::<ClientCap>(), "SET_CLIENT_CAP"),
            (0xc00c_642d, PRIME_HANDLE_TO_FD, size_of::<PrimeHandle>(), "PRIME_HANDLE_TO_FD"),
            (0xc00c_642e, PRIME_FD_TO_HANDLE, size_of::<PrimeHandle>(), "PRIME_FD_TO_HANDLE"),
            (0xc018_643a, WAIT_VBLANK, size_of::<WaitVblank>(), "WAIT_VBLANK"),
            (0xc018_643b, CRTC_GET_SEQUENCE, size_of::<CrtcSequence>(), "CRTC_GET_SEQUENCE"),
            (0xc018_643c, CRTC_QUEUE_SEQUENCE, size_of::<QueueSequence>(), "CRTC_QUEUE_SEQUENCE"),
            (0xc01c_64a3, MODE_CURSOR, size_of::<ModeCursor>(), "MODE_CURSOR"),
            (0xc020_64a4, MODE_GETGAMMA, size_of::<ModeGamma>(), "MODE_GETGAMMA"),
            (0xc040_64aa, MODE_GETPROPERTY, size_of::<ModeProperty>(), "MODE_GETPROPERTY"),
            (0xc010_64ab, MODE_SETPROPERTY, size_of::<ModeConnectorProperty>(), "MODE_SETPROPERTY"),
            (0xc010_64ac, MODE_GETPROPBLOB, size_of::<ModeBlob>(), "MODE_GETPROPBLOB"),
            (0xc01c_64ad, MODE_GETFB, size_of::<ModeFramebuffer>(), "MODE_GETFB"),
            (0xc010_64b5, MODE_GETPLANERESOURCES, size_of::<ModePlanes>(), "MODE_GETPLANERESOURCES"),
            (0xc020_64b6, MODE_GETPLANE, size_of::<ModePlane>(), "MODE_GETPLANE"),
            (0xc030_64b7, MODE_SETPLANE, size_of::<ModeSetPlane>(), "MODE_SETPLANE"),
            (
                0xc020_64b9,
                MODE_OBJ_GETPROPERTIES,
                size_of::<ModeObjectProperties>(),
                "MODE_OBJ_GETPROPERTIES",
            ),
            (0xc018_64ba, MODE_OBJ_SETPROPERTY, size_of::<ModeObjectProperty>(), "MODE_OBJ_SETPROPERTY"),
            (0xc024_64bb, MODE_CURSOR2, size_of::<ModeCursor2>(), "MODE_CURSOR2"),
            (0xc010_64bd, MODE_CREATEPROPBLOB, size_of::<ModeNewBlob>(), "MODE_CREATEPROPBLOB"),
            (0xc004_64be, MODE_DESTROYPROPBLOB, size_of::<ModeBlobId>(), "MODE_DESTROYPROPBLOB"),
            (0xc068_64b8, MODE_ADDFB2, size_of::<ModeFramebuffer2>(), "MODE_ADDFB2"),
        ] {
            let request = Request(word);
            assert!(request.of_drm());
            assert_eq!((request.number(), request.size(), &*request.to_string()), (number, size, name));
        }
        assert!(!Request(0x5401).of_drm(), "TCGETS");
        assert_eq!(Request(0xc020_642f).to_string(), "ioctl 0x2f");
    }

    #[test]
    fn arguments_that_are_absent_or_short_are_errors() {
        let mut argument = [0_u64; 4];
        let argument: *mut c_void = argument.as_mut_ptr().cast();
        let make = |create: &mut GemCreate| {
            create.handle = 1;
            Ok(())
        };
        let ask = |word, argument| Request(word).exchange(argument, make);
        assert_eq!(ask(0xc020_645d, std::ptr::null_mut()), Err(Errno(libc::EFAULT)));
        assert_eq!(ask(0xc01f_645d, argument), Err(Errno(libc::EINVAL)));
        assert_eq!(ask(0xc020_645d, argument), Ok(()));
    }
}
