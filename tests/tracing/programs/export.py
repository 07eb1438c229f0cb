"""Sets up OpenTelemetry, as docs/observability.md says.

The exporter reads OTEL_SERVICE_NAME and OTEL_EXPORTER_OTLP_ENDPOINT. When the process exits, the provider exports what
is left.
"""

from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor


def install(name: str) -> trace.Tracer:
    """Exports the spans of this program. Returns a tracer for its own."""
    provider = TracerProvider()
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    trace.set_tracer_provider(provider)
    return trace.get_tracer(name)
