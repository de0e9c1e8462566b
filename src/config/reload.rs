//! What a reload may not change, because it would change what a key is.

use super::model::{Config, Idempotency, Match, Route};

// === impl Config ===

impl Config {
    /// Why `new` cannot take the place of this configuration without a restart, a sentence each;
    /// empty if it can.
    ///
    /// A restart is needed where the retry of a request that already ran would become a new key,
    /// also because another route gets it, and where a listener or the ledger would change.
    pub fn reload_conflicts(&self, new: &Self) -> Vec<String> {
        let whole = [
            ("listen", self.listen != new.listen),
            ("admin", self.admin != new.admin),
            ("gateway_id", self.gateway_id != new.gateway_id),
            ("ledger", self.ledger != new.ledger),
            ("key_secret", self.key_secret != new.key_secret),
        ];
        let whole = whole.iter().filter(|(_, changed)| *changed);
        let mut conflicts: Vec<String> =
            whole.map(|(field, _)| format!("`{field}` has changed; restart to apply")).collect();
        for (index, route) in self.routes.iter().enumerate() {
            let Some(rules) = &route.idempotency else { continue };
            let renewed = new.routes.iter().find(|now| now.name == route.name);
            let renewed = renewed.map(|now| changes(rules, now)).unwrap_or_default();
            if renewed.is_empty() {
                conflicts.extend(heirs(route, rules, &self.routes[..index], &new.routes));
            } else {
                let renewed = renewed
                    .iter()
                    .map(|change| format!("route `{}` {change}; restart to apply", route.name));
                conflicts.extend(renewed);
            }
        }
        conflicts
    }
}

/// How a key of `now` differs from one of `rules`.
fn changes(rules: &Idempotency, now: &Route) -> Vec<String> {
    let Some(now) = &now.idempotency else {
        return vec!["no longer has `idempotency`".to_owned()];
    };
    let changed = [
        ("header", rules.header != now.header),
        ("scope", rules.scope != now.scope),
        ("namespace", rules.namespace != now.namespace),
    ];
    let changed = changed.iter().filter(|(_, changed)| *changed);
    changed.map(|(field, _)| format!("has another `{field}`")).collect()
}

/// Says of each other route that gets keyed requests of `route`, and knows them by another key.
fn heirs(route: &Route, rules: &Idempotency, earlier: &[Route], new: &[Route]) -> Vec<String> {
    let methods = route.keyed_methods();
    let keyed = Match { methods: Some(methods.to_vec()), ..route.matching.clone() };
    let mut conflicts = Vec::new();
    for now in new.iter().filter(|now| now.matching.overlaps(&keyed)) {
        // What an earlier route got was never a request of this one.
        if earlier.iter().any(|earlier| earlier.matching.covers(&now.matching)) {
            continue;
        }
        let is_reached = |method| match &now.matching.methods {
            Some(methods) => methods.contains(method),
            None => true,
        };
        let mut differences = changes(rules, now);
        if differences.is_empty()
            && methods.iter().any(|method| is_reached(method) && !now.is_keyed(method))
        {
            differences.push("has other `methods`".to_owned());
        }
        let requests = format!("route `{}` gets requests of route `{}`", now.name, route.name);
        conflicts.extend(
            differences.iter().map(|change| format!("{requests} and {change}; restart to apply")),
        );
        if now.matching.covers(&keyed) {
            break;
        }
    }
    conflicts
}
