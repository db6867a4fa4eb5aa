//! Distinction of public internet addresses from all others.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Metadata service inside one provider's network; public everywhere else.
const AZURE_METADATA: Ipv4Addr = Ipv4Addr::new(168, 63, 129, 16);

/// Blocks outside the public internet, as (network, length of the prefix): the registry of
/// special-purpose addresses, and multicast.
const SPECIAL_V4: &[([u8; 4], u32)] = &[
    ([0, 0, 0, 0], 8),
    ([10, 0, 0, 0], 8),
    ([100, 64, 0, 0], 10),
    ([127, 0, 0, 0], 8),
    ([169, 254, 0, 0], 16),
    ([172, 16, 0, 0], 12),
    ([192, 0, 0, 0], 24),
    ([192, 0, 2, 0], 24),
    ([192, 88, 99, 0], 24),
    ([192, 168, 0, 0], 16),
    ([198, 18, 0, 0], 15),
    ([198, 51, 100, 0], 24),
    ([203, 0, 113, 0], 24),
    // multicast, reserved and broadcast
    ([224, 0, 0, 0], 3),
];

/// Blocks that are not public inside 2000::/3: Teredo and other protocols' assignments,
/// documentation. Nothing outside 2000::/3 is public.
const SPECIAL_V6: &[([u16; 8], u32)] = &[
    ([0x2001, 0, 0, 0, 0, 0, 0, 0], 23),
    ([0x2001, 0xdb8, 0, 0, 0, 0, 0, 0], 32),
    ([0x3fff, 0, 0, 0, 0, 0, 0, 0], 20),
];

/// Returns true for an address of the public internet: not private, loopback, link-local, shared,
/// multicast, reserved, or one of these embedded in an IPv6 address.
pub fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let is_in = |(network, length): &([u8; 4], u32)| {
        let differing = u32::from(address) ^ u32::from(Ipv4Addr::from(*network));
        differing.leading_zeros() >= *length
    };
    address != AZURE_METADATA && !SPECIAL_V4.iter().any(is_in)
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    if let Some(inner) = embedded(address) {
        return is_public_v4(inner);
    }
    let is_in = |(network, length): &([u16; 8], u32)| {
        let differing = u128::from(address) ^ u128::from(Ipv6Addr::from(*network));
        differing.leading_zeros() >= *length
    };
    let is_global = address.segments()[0] & 0xe000 == 0x2000;
    is_global && !SPECIAL_V6.iter().any(is_in)
}

/// Returns the IPv4 address that packets go to: mapped (`::ffff:a.b.c.d`), translated by NAT64 or
/// tunnelled by 6to4.
fn embedded(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let from = |high: u16, low: u16| Ipv4Addr::from((u32::from(high) << 16) | u32::from(low));
    match address.segments() {
        [0, 0, 0, 0, 0, 0xffff, high, low] | [0x64, 0xff9b, 0, 0, 0, 0, high, low] => {
            Some(from(high, low))
        }
        [0x2002, high, low, ..] => Some(from(high, low)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn public_addresses_are_distinguished_from_others() {
        let public = [
            "1.1.1.1",
            "93.184.216.34",
            "100.63.255.255",
            "100.128.0.0",
            "172.15.255.255",
            "172.32.0.0",
            "223.255.255.255",
            "2606:4700::1111",
            "2a00:1450::1",
            "::ffff:1.1.1.1",
            "64:ff9b::1.1.1.1",
            "2002:0101:0101::1",
        ];
        let hidden = [
            "0.0.0.0",
            "0.1.2.3",
            "10.0.0.1",
            "100.64.0.1",
            "100.100.100.200",
            "127.0.0.1",
            "127.255.255.254",
            "168.63.129.16",
            "169.254.169.254",
            "172.16.0.1",
            "172.31.255.255",
            "192.0.0.170",
            "192.168.1.1",
            "198.19.0.1",
            "224.0.0.1",
            "240.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::7f00:1",
            "::ffff:127.0.0.1",
            "::ffff:169.254.169.254",
            "64:ff9b::10.0.0.1",
            "64:ff9b:1::1",
            "2001::1",
            "2001:db8::1",
            "2002:7f00:1::",
            "fc00::1",
            "fd00:ec2::254",
            "fe80::1",
            "fec0::1",
            "ff02::1",
        ];
        for (addresses, expected) in [(&public[..], true), (&hidden[..], false)] {
            for address in addresses {
                assert_eq!(is_public(address.parse().unwrap()), expected, "{address}");
            }
        }
    }
}
