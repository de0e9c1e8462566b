//! When certificates end, which rustls does not tell.

use rustls::pki_types::CertificateDer;
use x509_cert::{Certificate, der::Decode};

use crate::domain::Timestamp;

/// The earliest end. What rustls makes use of and this reader refuses is passed over: a metric is
/// no reason to go without a connection.
pub(super) fn earliest(certificates: &[CertificateDer<'_>]) -> Option<Timestamp> {
    let read = |der: &CertificateDer<'_>| Certificate::from_der(der).ok();
    let ends = certificates.iter().filter_map(read).map(|certificate| {
        let end = certificate.tbs_certificate().validity().not_after.to_unix_duration();
        Timestamp::from_millis(0).after(end)
    });
    ends.min()
}
