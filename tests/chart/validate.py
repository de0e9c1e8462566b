"""Holds a rendering of the chart to Kubernetes' schemas, and its parts to each other.

    validate.py RENDERED CONFIG ENVIRONMENT

Writes the gateway's file to CONFIG and the names of the variables that its pod has to ENVIRONMENT.
"""

import sys
from pathlib import Path

import kubernetes_validate
import yaml
from cloudcoil.models.prometheus_operator import v1 as prometheus_operator

# The first version that the chart allows, and the last one whose schemas are there.
VERSIONS = ["1.27", kubernetes_validate.latest_version()]
CHART = Path("charts/oncegate")

wrong = []


def expect(condition, text):
    if not condition:
        wrong.append(text)


def name(document):
    return f"{document['kind']}/{document['metadata']['name']}"


def validate(document):
    if document["apiVersion"] == "monitoring.coreos.com/v1":
        model = getattr(prometheus_operator, document["kind"]).model_validate(document)
        # The models take any field and keep those that they know.
        known = model.model_dump(by_alias=True, exclude_unset=True, mode="json")
        expect(known == document, f"{name(document)}: has fields that the operator does not know")
        return
    for version in VERSIONS:
        kubernetes_validate.validate(document, version, strict=True)


def is_part(selector, labels):
    return bool(selector) and selector.items() <= labels.items()


documents = [it for it in yaml.safe_load_all(Path(sys.argv[1]).read_text()) if it]
for document in documents:
    try:
        validate(document)
    except Exception as error:  # each library has its own
        wrong.append(f"{name(document)}: {error}")

by_name = {name(document): document for document in documents}
expect(len(by_name) == len(documents), "two manifests have one name")
kinds = {}
for document in documents:
    kinds.setdefault(document["kind"], []).append(document)

[deployment] = kinds["Deployment"]
template = deployment["spec"]["template"]
labels, pod = template["metadata"]["labels"], template["spec"]
[container] = pod["containers"]
ports = {port["name"] for port in container["ports"]}

# Whoever chooses pods chooses these, and every port that is named is one of theirs.
chosen = [("Deployment", deployment["spec"]["selector"]["matchLabels"])]
chosen += [(name(it), it["spec"]["selector"]) for it in kinds["Service"]]
chosen += [(name(it), it["spec"]["selector"]["matchLabels"]) for it in kinds.get("PodDisruptionBudget", [])]
chosen += [(name(it), it["spec"]["podSelector"]["matchLabels"]) for it in kinds.get("NetworkPolicy", [])]
chosen += [(it["topologyKey"], it["labelSelector"]["matchLabels"]) for it in pod["topologySpreadConstraints"]]
for who, selector in chosen:
    expect(is_part(selector, labels), f"{who}: selects no pod of the deployment")
named = [container[probe]["httpGet"]["port"] for probe in ("startupProbe", "readinessProbe", "livenessProbe")]
named += [port["targetPort"] for it in kinds["Service"] for port in it["spec"]["ports"]]
for it in kinds.get("NetworkPolicy", []):
    named += [port["port"] for rule in it["spec"]["ingress"] for port in rule["ports"]]
for port in named:
    expect(port in ports, f"{port}: no such port")

services = kinds["Service"]
for monitor in kinds.get("ServiceMonitor", []):
    selector = monitor["spec"]["selector"]["matchLabels"]
    scraped = [it for it in services if is_part(selector, it["metadata"]["labels"])]
    expect(len(scraped) == 1, f"{name(monitor)}: scrapes {len(scraped)} services")
    offered = {port["name"] for it in scraped for port in it["spec"]["ports"]}
    expect({it["port"] for it in monitor["spec"]["endpoints"]} <= offered, f"{name(monitor)}: no such port")
for ingress in kinds.get("Ingress", []):
    for rule in ingress["spec"]["rules"]:
        for path in rule["http"]["paths"]:
            backend = path["backend"]["service"]
            service = by_name.get(f"Service/{backend['name']}")
            offered = {port["name"] for port in service["spec"]["ports"]} if service else set()
            expect(backend["port"]["name"] in offered, f"{name(ingress)}: no such backend")
            expect("admin" not in offered, f"{name(ingress)}: exposes the admin port")
for scaler in kinds.get("HorizontalPodAutoscaler", []):
    expect(scaler["spec"]["scaleTargetRef"]["name"] == deployment["metadata"]["name"], "scales nothing")

volumes = {volume["name"]: volume for volume in pod["volumes"]}
mounts = [mount["name"] for mount in container["volumeMounts"]]
expect(set(mounts) == set(volumes), "a volume is not mounted, or a mount has no volume")
configured = by_name[f"ConfigMap/{volumes['config']['configMap']['name']}"]
for claim in kinds.get("PersistentVolumeClaim", []):
    mounted = volumes["data"]["persistentVolumeClaim"]["claimName"]
    expect(claim["metadata"]["name"] == mounted, f"{name(claim)}: is not mounted")

# What the chart carries for Prometheus and Grafana arrives as it is.
rules, dashboard = CHART / "rules/oncegate.yaml", CHART / "dashboards/oncegate.json"
for rule in kinds.get("PrometheusRule", []):
    expect(rule["spec"] == yaml.safe_load(rules.read_text()), f"{name(rule)}: differs from {rules}")
for it in kinds["ConfigMap"]:
    if it is not configured:
        text = it["data"]["oncegate.json"].rstrip()
        expect(text == dashboard.read_text().rstrip(), f"{name(it)}: differs from {dashboard}")

for text in wrong:
    print(f"{sys.argv[1]}: {text}", file=sys.stderr)
if wrong:
    sys.exit(1)
Path(sys.argv[2]).write_text(configured["data"]["oncegate.yaml"])
Path(sys.argv[3]).write_text("".join(f"{it['name']}\n" for it in container["env"]))
print(f"{len(documents)} manifests are valid in Kubernetes {' and '.join(VERSIONS)}")
