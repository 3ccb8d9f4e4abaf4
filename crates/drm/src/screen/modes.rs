//! The modes of the screen, and the description that the monitor returns (EDID).
//!
//! The modes are from VESA's "Display Monitor Timings". The description is from VESA's "E-EDID Standard", release A.

use crate::ioctls::ModeInfo;

/// Modes of the screen. The first mode is preferred.
pub(super) const MODES: [ModeInfo; 3] = [
    mode(b"640x480", 25_175, [640, 656, 752, 800], [480, 490, 492, 525], NEGATIVE, PREFERRED),
    mode(b"800x600", 40_000, [800, 840, 968, 1056], [600, 601, 605, 628], POSITIVE, 0),
    mode(b"1024x768", 65_000, [1024, 1048, 1184, 1344], [768, 771, 777, 806], NEGATIVE, 0),
];

/// The size of the monitor in millimetres.
pub(super) const MILLIMETRES: [u32; 2] = [320, 240];

/// Flag of the preferred mode. (`DRM_MODE_TYPE_PREFERRED`)
const PREFERRED: u32 = 1 << 3;
/// Flags for two positive or two negative sync pulses. (`DRM_MODE_FLAG_PHSYNC` and others)
const POSITIVE: u32 = 1 << 0 | 1 << 2;
const NEGATIVE: u32 = 1 << 1 | 1 << 3;

/// Returns a mode with 60 Hz. The clock is in kHz. `across` and `down` each contain the visible size, the start and the
/// end of the sync pulse, and the total size.
const fn mode(name: &[u8], clock: u32, across: [u16; 4], down: [u16; 4], pulses: u32, kind: u32) -> ModeInfo {
    let mut text = [0; 32];
    let mut at = 0;
    while at < name.len() {
        text[at] = name[at];
        at += 1;
    }
    let [h, v] = [across, down];
    ModeInfo {
        clock,
        horizontal: [h[0], h[1], h[2], h[3], 0],
        vertical: [v[0], v[1], v[2], v[3], 0],
        refresh: 60,
        flags: pulses,
        // The flag with the value `1 << 6` means that the driver created the mode. (`DRM_MODE_TYPE_DRIVER`)
        kind: kind | 1 << 6,
        name: text,
    }
}

/// Returns whether a screen can have this mode. The mode must have a clock, and visible pixels in each direction. In
/// each direction, the four values must not decrease in this order: visible size, start of the sync pulse, end of the
/// sync pulse, total size.
///
/// Source: the kernel's `drm_mode_validate_basic`. Flags are not checked.
pub(super) fn is_valid(mode: &ModeInfo) -> bool {
    let ordered =
        |[seen, start, end, all, _]: [u16; 5]| seen > 0 && seen <= start && start <= end && end <= all;
    mode.clock != 0 && ordered(mode.horizontal) && ordered(mode.vertical)
}

/// Returns the description of the monitor in version 1.3 (E-EDID, section 3). The monitor is digital and has the modes
/// [`MODES`].
pub(super) fn edid() -> [u8; 128] {
    let mut edid = [0_u8; 128];
    edid[..8].copy_from_slice(&[0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0]);
    // The code of the maker is RCV. Each of the three letters takes five bits. The product number is 1. The year of
    // manufacture is 2006.
    let maker =
        [b'R', b'C', b'V'].iter().fold(0_u16, |word, letter| word << 5 | u16::from(letter - b'A' + 1));
    edid[8..10].copy_from_slice(&maker.to_be_bytes());
    edid[10] = 1;
    edid[17] = (2006 - 1990) as u8;
    edid[18..20].copy_from_slice(&[1, 3]);
    // These bytes state that the input is digital, the size in centimetres, and a gamma of 2.2. The bytes also state
    // these features: standby, suspend, off, RGB, sRGB, and that the first timing is the preferred timing.
    edid[20] = 0x80;
    edid[21..23].copy_from_slice(&MILLIMETRES.map(|size| (size / 10) as u8));
    edid[23..25].copy_from_slice(&[220 - 100, 0xee]);
    // The chromaticities are those of sRGB.
    edid[25..35].copy_from_slice(&[0xee, 0x91, 0xa3, 0x54, 0x4c, 0x99, 0x26, 0x0f, 0x50, 0x54]);
    // The established timings are 640x480, 800x600 and 1024x768 at 60 Hz.
    edid[35..37].copy_from_slice(&[1 << 5 | 1 << 0, 1 << 3]);
    // There are no standard timings.
    edid[38..54].fill(1);
    edid[54..72].copy_from_slice(&timing(&MODES[0]));
    edid[72..90].copy_from_slice(&text(0xfc, b"Reconverge"));
    // The screen supports 59 to 61 Hz for frames, 30 to 50 kHz for lines, and up to 70 MHz for pixels.
    edid[90..108].copy_from_slice(&[0, 0, 0, 0xfd, 0, 59, 61, 30, 50, 7, 0, 0x0a, 32, 32, 32, 32, 32, 32]);
    edid[108..126].copy_from_slice(&text(0xff, b"1"));
    edid[127] = edid.iter().fold(0_u8, |sum, byte| sum.wrapping_sub(*byte));
    edid
}

/// Returns the detailed timing descriptor of a mode. (E-EDID, section 3.10.2)
fn timing(mode: &ModeInfo) -> [u8; 18] {
    let clock = (mode.clock / 10).to_le_bytes();
    let parts = |direction: [u16; 5]| {
        let [seen, start, end, all, _] = direction;
        [seen, all - seen, start - seen, end - start]
    };
    let [across, down] = [parts(mode.horizontal), parts(mode.vertical)];
    let high = |value: u16, shift: u32| ((value >> shift) as u8 & 0xf) << 4;
    let size = MILLIMETRES.map(|size| size as u16);
    [
        clock[0],
        clock[1],
        across[0] as u8,
        across[1] as u8,
        high(across[0], 8) | (across[1] >> 8) as u8,
        down[0] as u8,
        down[1] as u8,
        high(down[0], 8) | (down[1] >> 8) as u8,
        across[2] as u8,
        across[3] as u8,
        (down[2] as u8 & 0xf) << 4 | down[3] as u8 & 0xf,
        ((across[2] >> 8) << 6 | (across[3] >> 8) << 4 | (down[2] >> 4) << 2 | down[3] >> 4) as u8,
        size[0] as u8,
        size[1] as u8,
        high(size[0], 8) | (size[1] >> 8) as u8,
        0,
        0,
        // The sync pulses are digital and separate. The flags are the vertical and horizontal polarity of the sync
        // pulses.
        0x18 | u8::from(mode.flags & 1 << 2 != 0) << 2 | u8::from(mode.flags & 1 << 0 != 0) << 1,
    ]
}

/// Returns a descriptor with a tag and a text of up to 13 letters. (E-EDID, section 3.10.3)
fn text(tag: u8, letters: &[u8]) -> [u8; 18] {
    let mut block = [b' '; 18];
    block[..5].copy_from_slice(&[0, 0, 0, tag, 0]);
    block[5..5 + letters.len()].copy_from_slice(letters);
    if let Some(end) = block[5..].get_mut(letters.len()) {
        *end = b'\n';
    }
    block
}

#[cfg(test)]
mod tests {
    use reconverge_board::screen::PREFERRED as PREFERRED_SIZE;

    use super::*;

    /// The expected layout is the layout in E-EDID, sections 3.2, 3.10.2 and 3.12. The expected timing of 640x480 is
    /// the timing in VESA's document.
    #[test]
    fn the_description_has_a_sum_of_zero_and_the_timing_of_the_first_mode() {
        let edid = edid();
        assert_eq!(edid.iter().fold(0_u8, |sum, byte| sum.wrapping_add(*byte)), 0);
        assert_eq!(u16::from_be_bytes([edid[8], edid[9]]), 18 << 10 | 3 << 5 | 22);
        assert_eq!(edid[54..66], [0xd5, 0x09, 0x80, 0xa0, 0x20, 0xe0, 0x2d, 0x10, 16, 96, 0xa2, 0]);
        assert_eq!(edid[77..88], *b"Reconverge\n");
    }

    /// The coordinates of the window's pointer cover exactly this size, see `reconverge_board::screen`.
    #[test]
    fn the_preferred_mode_has_the_preferred_size() {
        assert_eq!([MODES[0].horizontal[0], MODES[0].vertical[0]], PREFERRED_SIZE);
        assert_eq!(MODES[0].kind & PREFERRED, PREFERRED);
    }

    /// The clocks of VESA result in 60 Hz, with an error of less than half a hertz.
    #[test]
    fn modes_have_sixty_frames_a_second() {
        for mode in MODES {
            let all = u32::from(mode.horizontal[3]) * u32::from(mode.vertical[3]);
            let rate = f64::from(mode.clock) * 1000. / f64::from(all);
            assert!((rate - f64::from(mode.refresh)).abs() < 0.5, "{rate}");
        }
    }
}
