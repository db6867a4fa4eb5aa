"""Renders the chart with helm, and compares its parts with each other and with the server: check.py GREENROOM

Needs helm and PyYAML. With the package kubernetes-validate, objects are also held against the schemas of Kubernetes.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import yaml

try:
    import kubernetes_validate
except ImportError:
    kubernetes_validate = None

CHART = Path(__file__).resolve().parent / "greenroom"
POSTGRESQL = ["--set", r"postgresql.url=postgres://greenroom@db1\,db2/greenroom"]
CASES = {
    "embedded": [],
    "postgresql": [*POSTGRESQL, "--set", "replicas=3,postgresql.caSecret=database-ca"],
    "everything": [
        *POSTGRESQL,
        "--set", "replicas=2,ingress.enabled=true,ingress.hosts={green.example},ingress.tlsSecret=tls",
        "--set", "serviceMonitor.enabled=true,serviceMonitor.authorizationSecret.name=scraper",
        "--set", "restartOnChange=false,preStopSeconds=0,shutdownGraceSeconds=120",
        "--set", "networkPolicy.from[0].namespaceSelector.matchLabels.name=ingress",
    ],
}
REFUSED = {
    "more servers than a file can have": (["--set", "replicas=2"], "needs postgresql.url"),
    "a misspelt value": (["--set", "replica=2"], "replica"),
    "a section of the chart": (["--set-string", "config=[server]"], "the chart writes [server]"),
    "an ingress without a host": (["--set", "ingress.enabled=true"], "at least one host"),
}


def helm(*arguments):
    return subprocess.run(["helm", *arguments], capture_output=True, text=True)


def render(arguments):
    done = helm("template", "green", str(CHART), "--namespace", "rooms", *arguments)
    assert done.returncode == 0, done.stderr
    return [it for it in yaml.safe_load_all(done.stdout) if it]


def check_configuration(program, text, environment):
    """`greenroom check --strict` with the variables that the container has."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "config.toml"
        # a Secret that a volume would bring
        text = text.replace("/etc/greenroom-database/ca.crt", str(authority(folder)))
        file.write_text(text, encoding="utf-8")
        variables = {name: "0123456789abcdef0123456789abcdef" for name in environment}
        command = [program, "check", "--strict", "--config", str(file)]
        done = subprocess.run(command, capture_output=True, text=True, env=variables)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout.replace(folder + os.sep, "").strip()


def authority(folder):
    file = Path(folder) / "ca.crt"
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
    subject = ["-subj", "/CN=database", "-keyout", os.devnull, "-out", str(file)]
    subprocess.run([*command, *subject], check=True, capture_output=True)
    return file


def check_objects(objects):
    """Returns the configuration, and the names of the variables of the container."""
    kinds = {it["kind"]: it for it in objects if it["kind"] != "Service"}
    workload = kinds.get("Deployment") or kinds["StatefulSet"]
    spec = workload["spec"]
    template = spec["template"]
    pod, container = template["spec"], template["spec"]["containers"][0]
    selector = spec["selector"]["matchLabels"]

    labels = template["metadata"]["labels"].items()
    assert selector.items() <= labels
    services = [it for it in objects if it["kind"] == "Service"]
    policy = kinds["NetworkPolicy"]["spec"]
    for selected in [it["spec"]["selector"] for it in services] + [policy["podSelector"]["matchLabels"]]:
        assert selected == selector, selected
    ports = {it["name"]: it["containerPort"] for it in container["ports"]}
    for service in services:
        assert all(port["targetPort"] in ports for port in service["spec"]["ports"])
    assert {port["port"] for rule in policy["ingress"] for port in rule["ports"]} == set(ports)

    config = kinds["ConfigMap"]["data"]["config.toml"]
    seconds = {}
    for line in config.splitlines():
        name, _, value = line.partition(" = ")
        if name in ("shutdown_grace", "patience"):
            seconds[name] = int(value.strip('"s'))
    stop = container.get("lifecycle", {}).get("preStop", {}).get("exec", {}).get("command", ["sleep", "0"])
    needed = sum(seconds.values()) + int(stop[1]) + 20
    assert pod["terminationGracePeriodSeconds"] == needed, needed

    for probe, page in [("startupProbe", "/livez"), ("livenessProbe", "/livez"), ("readinessProbe", "/readyz")]:
        assert container[probe]["httpGet"] == {"path": page, "port": "http"}
    assert container["securityContext"]["readOnlyRootFilesystem"] is True
    assert pod["securityContext"]["runAsNonRoot"] is True
    dockerfile = (CHART.parent.parent / "Dockerfile").read_text(encoding="utf-8")
    user = pod["securityContext"]["runAsUser"]
    assert f"\nUSER {user}:{user}\n" in dockerfile
    claims = [it["metadata"]["name"] for it in spec.get("volumeClaimTemplates", [])]
    volumes = sorted([it["name"] for it in pod["volumes"]] + claims)
    assert volumes == sorted(it["name"] for it in container["volumeMounts"]), volumes

    is_shared = workload["kind"] == "Deployment"
    assert is_shared == ("[cluster]" in config) == ("links" in ports) == (not claims)
    assert is_shared or spec["replicas"] == 1
    budget = kinds.get("PodDisruptionBudget")
    assert (budget is not None) == (spec["replicas"] > 1)
    assert budget is None or budget["spec"]["selector"]["matchLabels"] == selector
    for kind in ("Ingress", "ServiceMonitor"):
        if kind not in kinds:
            continue
        text = yaml.safe_dump(kinds[kind])
        assert "http" in text and ("/metrics" in text) == (kind == "ServiceMonitor")
    return config, [it["name"] for it in container["env"]]


def main():
    program = sys.argv[1]
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text(encoding="utf-8"))
    manifest = (CHART.parents[3] / "Cargo.toml").read_text(encoding="utf-8")
    assert f'version = "{chart["appVersion"]}"\nedition' in manifest, "appVersion is not that of Cargo.toml"
    linted = helm("lint", "--strict", str(CHART))
    assert linted.returncode == 0, linted.stdout + linted.stderr
    for name, arguments in CASES.items():
        objects = render(arguments)
        config, environment = check_objects(objects)
        said = check_configuration(program, config, environment)
        if kubernetes_validate:
            for it in (it for it in objects if it["kind"] != "ServiceMonitor"):
                kubernetes_validate.validate(it, "1.31", strict=True)
        print(f"{name}: {len(objects)} objects; {said}")
    for name, (arguments, reason) in REFUSED.items():
        done = helm("template", "green", str(CHART), *arguments)
        assert done.returncode != 0 and reason in done.stderr, f"{name}: {done.stderr}"
        print(f"{name}: refused")
    if not kubernetes_validate:
        print("NOT TESTED: the schemas of Kubernetes: kubernetes-validate is not installed")


main()
