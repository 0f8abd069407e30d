"""ServeGym: {{client}}: a client for OpenEnv."""

from .client import {{client}}
from .models import {{action}}, {{observation}}, {{state}}

__all__ = ["{{client}}", "{{action}}", "{{observation}}", "{{state}}"]
