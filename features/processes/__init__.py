"""Every process that is started for an agent, and the secrets that none of them may see or tell.

Owns the spawn policy (environment, command, folder), the one place that starts processes, the hardening of the host's own process, and
redaction, and the sandbox, a hook of the policy. No other module may start a process; ``tests/architecture/test_spawners.py`` proves it.
Failure: closed. A hook that raises, a command that cannot be started, a folder that is gone: ModelMustAct, and nothing runs.
"""

from features.processes.bubblewrap_sandbox import BubblewrapSandbox
from features.processes.host_process_hardening import HostProcessHardening
from features.processes.process_runner import ProcessRunner
from features.processes.process_spawn_policy import ProcessPolicyOptions, ProcessSpawnPolicy
from features.processes.secret_redactor import SecretRedactor

__all__ = ["BubblewrapSandbox", "HostProcessHardening", "ProcessPolicyOptions", "ProcessRunner", "ProcessSpawnPolicy", "SecretRedactor"]
