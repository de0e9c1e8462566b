//! The guided tour: what to type, and what it shows.

use std::net::SocketAddr;

use crate::app::Addresses;

/// The names in braces stand for addresses.
const TOUR: &str = r#"oncegate demo is running. Everything is in memory and on loopback; Ctrl-C ends it.

  gateway     http://{gateway}
  payment API http://{api}   (charges on every POST; GET /executions says how often it did)
  admin       http://{admin}   (/readyz, /metrics, /api/v1/keys)

Open a second terminal and paste.

1. A charge. It is executed: 201.

   curl -si http://{gateway}/v1/charges -H 'X-Api-Key: shop-1' -H 'Idempotency-Key: order-1' -d '{"amount": 1999, "currency": "eur"}'

2. The same line again. The answer is replayed (Idempotent-Replayed: true), and the API
   was called once:

   curl -si http://{gateway}/v1/charges -H 'X-Api-Key: shop-1' -H 'Idempotency-Key: order-1' -d '{"amount": 1999, "currency": "eur"}'
   curl -s http://{api}/executions

3. The same key with another amount is refused: 422 key-reused.

   curl -si http://{gateway}/v1/charges -H 'X-Api-Key: shop-1' -H 'Idempotency-Key: order-1' -d '{"amount": 1, "currency": "eur"}'

4. Twenty at once: one execution more, twenty times the same answer.

   seq 20 | xargs -P 20 -I{} curl -s http://{gateway}/v1/charges -H 'X-Api-Key: shop-1' -H 'Idempotency-Key: order-4' -H 'X-Demo: slow' -d '{"amount": 4, "currency": "eur"}'
   curl -s http://{api}/executions

5. The client gives up after one second; the charge goes on, and the retry gets its answer:

   curl -si -m 1 http://{gateway}/v1/charges -H 'X-Api-Key: shop-1' -H 'Idempotency-Key: order-5' -H 'X-Demo: slow' -d '{"amount": 5, "currency": "eur"}'
   curl -si http://{gateway}/v1/charges -H 'X-Api-Key: shop-1' -H 'Idempotency-Key: order-5' -d '{"amount": 5, "currency": "eur"}'

6. The line breaks after the API has charged: 502 upstream-interrupted. Nobody knows what
   happened, so the retry is not executed: 409 outcome-unknown. Still one execution:

   curl -si http://{gateway}/v1/charges -H 'X-Api-Key: shop-1' -H 'Idempotency-Key: order-6' -H 'X-Demo: cut' -d '{"amount": 6, "currency": "eur"}'
   curl -si http://{gateway}/v1/charges -H 'X-Api-Key: shop-1' -H 'Idempotency-Key: order-6' -d '{"amount": 6, "currency": "eur"}'
   curl -s http://{api}/v1/charges

7. An API that says it did nothing (503 with Retry-After) frees the key, and the retry runs:

   curl -si http://{gateway}/v1/charges -H 'X-Api-Key: shop-1' -H 'Idempotency-Key: order-7' -H 'X-Demo: busy' -d '{"amount": 7, "currency": "eur"}'
   curl -si http://{gateway}/v1/charges -H 'X-Api-Key: shop-1' -H 'Idempotency-Key: order-7' -d '{"amount": 7, "currency": "eur"}'

8. What the operator sees, and the key that waits for a decision (oncegate keys --help):

   curl -s http://{admin}/metrics | grep '^oncegate_requests_total.*charges.* [1-9]'
   curl -s 'http://{admin}/api/v1/keys?state=unknown'

"#;

pub(super) fn text(gateway: Addresses, api: SocketAddr) -> String {
    TOUR.replace("{gateway}", &gateway.public.to_string())
        .replace("{admin}", &gateway.admin.to_string())
        .replace("{api}", &api.to_string())
}
