"""Checks the Kubernetes manifests in `examples/deployment`, without a cluster.

The kinds of Kubernetes itself are validated against its schemas, strictly: a misspelt field is an error. Schemas of the Gateway API
are not part of these, so that its kinds are only parsed. What a manifest refers to by name must exist in these files: the pods of
labels, the ports of pods and Services, the Services of routes, and the secrets that the first comment of a file creates.
Run as a program, in an environment with `requirements-manifests.txt`, it prints the problems as a JSON list.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
FOLDER = HERE.parents[1] / "examples" / "deployment"
VERSION = "1.37"
GATEWAY_API = "gateway.networking.k8s.io/"


def problems() -> list[str]:
    """Returns what is wrong with the manifests."""
    sys.path[:0] = [str(HERE.parent)]
    from harness import environment

    python = environment.venv("manifests", HERE / "requirements-manifests.txt")
    done = environment.checked([str(python), __file__], "checking the manifests")
    return json.loads(done.stdout.splitlines()[-1])


def values(within: Any, name: str) -> Iterator[Any]:
    """All values of members with this name, at any level."""
    if isinstance(within, dict):
        for key, value in within.items():
            if key == name:
                yield value
            yield from values(value, name)
    elif isinstance(within, list):
        for value in within:
            yield from values(value, name)


class Manifests:
    """All manifests of the folder, whose names refer to each other."""

    def __init__(self, by_file: dict[str, list[dict[str, Any]]], texts: dict[str, str]) -> None:
        self.by_file = by_file
        self.all = [manifest for manifests in by_file.values() for manifest in manifests]
        self.secrets = {name for text in texts.values() for name in re.findall(r"create secret \w+ (\S+)", text)}

    def named(self, kind: str) -> dict[str, dict[str, Any]]:
        return {one["metadata"]["name"]: one for one in self.all if one["kind"] == kind}

    def pods(self, labels: dict[str, str]) -> list[dict[str, Any]]:
        """The templates of pods with these labels."""
        templates = [one["spec"]["template"] for one in self.all if "template" in one["spec"]]
        return [one for one in templates if labels.items() <= one["metadata"]["labels"].items()]

    def ports(self, pods: list[dict[str, Any]]) -> set[str]:
        return {port["name"] for pod in pods for container in pod["spec"]["containers"] for port in container["ports"]}

    def dangling(self, manifest: dict[str, Any]) -> Iterator[str]:
        """What this manifest names and no file has."""
        kind, spec = manifest["kind"], manifest["spec"]
        for template in values(spec, "template"):
            for probe in ("readinessProbe", "livenessProbe"):
                for found in values(template, probe):
                    if found["httpGet"]["port"] not in self.ports([template]):
                        yield f"no container has the port {found['httpGet']['port']} of {probe}"
        selected = [*values(spec, "podSelector"), *([spec["selector"]] if "selector" in spec else [])]
        for selector in selected:
            labels = selector if kind == "Service" else selector.get("matchLabels", {})
            pods = self.pods(labels)
            if not labels or not pods:
                yield f"no pod has the labels {labels}"
        if kind in ("Service", "NetworkPolicy"):
            pods = self.pods(spec["selector"] if kind == "Service" else spec["podSelector"]["matchLabels"])
            targets = [port.get("targetPort") for port in spec.get("ports", [])]
            targets += [port["port"] for rule in spec.get("ingress", []) for port in rule["ports"]]
            for target in targets:
                if isinstance(target, str) and target not in self.ports(pods):
                    yield f"no container has the port {target}"
        services, gateways = self.named("Service"), self.named("Gateway")
        for backends in values(spec, "backendRefs"):
            for backend in backends:
                service = services.get(backend["name"])
                if service is None or backend["port"] not in [port["port"] for port in service["spec"]["ports"]]:
                    yield f"no Service {backend['name']} has the port {backend['port']}"
        for parents in values(spec, "parentRefs"):
            yield from (f"no Gateway {one['name']}" for one in parents if one["name"] not in gateways)
        secrets = [one["name"] for one in values(spec, "secretKeyRef")]
        secrets += [one["name"] for certificates in values(spec, "certificateRefs") for one in certificates]
        yield from (f"no comment creates the secret {name}" for name in secrets if name not in self.secrets)
        if "serviceName" in spec and spec["serviceName"] not in services:
            yield f"no Service {spec['serviceName']}"


def check() -> Iterator[str]:
    import kubernetes_validate
    import yaml

    texts = {path.name: path.read_text("utf-8") for path in sorted(FOLDER.glob("*.yaml"))}
    manifests = Manifests({name: list(yaml.safe_load_all(text)) for name, text in texts.items()}, texts)
    for name, found in manifests.by_file.items():
        for manifest in found:
            where = f"examples/deployment/{name}: {manifest['kind']} {manifest['metadata']['name']}"
            if not manifest["apiVersion"].startswith(GATEWAY_API):
                try:
                    kubernetes_validate.validate(manifest, VERSION, strict=True)
                except kubernetes_validate.ValidationError as error:
                    yield f"{where}: {error.message}"
            yield from (f"{where}: {problem}" for problem in manifests.dangling(manifest))
    if not manifests.all:
        yield f"no manifests in {FOLDER}"


if __name__ == "__main__":
    print(json.dumps(list(check())))
