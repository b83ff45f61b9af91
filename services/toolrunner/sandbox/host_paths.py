"""The paths of the host that programs need: the only ones that a workspace may see."""

#: Programs and their files.
PROGRAMS = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/opt", "/nix/store")

#: Settings without secrets; no resolver is among them, since the proxy resolves names.
SETTINGS = tuple(
    f"/etc/{name}"
    for name in (
        *("alternatives", "bash.bashrc", "bash_completion.d", "ca-certificates", "crypto-policies"),
        *("debian_version", "fonts", "gitconfig", "group", "host.conf", "hosts", "inputrc"),
        *("ld.so.cache", "ld.so.conf", "ld.so.conf.d", "localtime", "locale.alias", "magic"),
        *("magic.mime", "mime.types", "nsswitch.conf", "os-release", "passwd", "perl", "pki"),
        *("profile", "profile.d", "protocols", "python3", "python3.11", "python3.12", "services"),
        *("shells", "ssl/certs", "ssl/openssl.cnf", "terminfo", "timezone", "xdg"),
    )
)
#: Needed additionally by a workspace with an open network.
RESOLVERS = ("/etc/resolv.conf",)

DEVICES = tuple(f"/dev/{name}" for name in ("null", "zero", "full", "random", "urandom", "tty"))

#: Files of the host's /proc that show no processes.
KERNEL_FACTS = tuple(
    f"/proc/{name}"
    for name in ("cpuinfo", "filesystems", "loadavg", "meminfo", "stat", "uptime", "version")
)

TEMPORARY = ("/tmp", "/var/tmp")
EMPTY = ("/home", "/root", "/run", "/srv", "/mnt")
