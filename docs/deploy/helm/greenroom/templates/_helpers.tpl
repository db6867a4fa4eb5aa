{{- define "greenroom.name" -}}
{{- if contains .Chart.Name .Release.Name -}}
{{ .Release.Name | trunc 50 | trimSuffix "-" }}
{{- else -}}
{{ printf "%s-%s" .Release.Name .Chart.Name | trunc 50 | trimSuffix "-" }}
{{- end -}}
{{- end -}}

{{- define "greenroom.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "greenroom.labels" -}}
{{ include "greenroom.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end -}}

{{- /* The whole configuration: what the chart knows, then what the values add. */ -}}
{{- define "greenroom.config" -}}
{{- range $section := list "server" "store" "cluster" -}}
{{- if regexMatch (printf "(?m)^\\s*\\[%s\\]" $section) $.Values.config -}}
{{- fail (printf "config: the chart writes [%s]; see shutdownGraceSeconds, patienceSeconds, postgresql and persistence" $section) -}}
{{- end -}}
{{- end -}}
{{- if and (gt (int .Values.replicas) 1) (not .Values.postgresql.url) -}}
{{- fail "replicas: more than one server needs postgresql.url" -}}
{{- end -}}
[server]
host = "0.0.0.0"
name = "${POD_NAME}"
shutdown_grace = "{{ int .Values.shutdownGraceSeconds }}s"

[store]
{{- if .Values.postgresql.url }}
url = {{ .Values.postgresql.url | quote }}
password = "secret:GREENROOM_DATABASE_PASSWORD"
{{- if .Values.postgresql.caSecret }}
ca = "/etc/greenroom-database/ca.crt"
{{- end }}
state_dir = "/var/lib/greenroom"
{{- else }}
url = "sqlite:///var/lib/greenroom/greenroom.db"
{{- end }}
patience = "{{ int .Values.patienceSeconds }}s"
{{- if .Values.postgresql.url }}

[cluster]
# the network policy admits the other pods to this port, and nothing else
listen = "0.0.0.0:3142"
advertise = "${POD_IP}:3142"
trusted_network = true
{{- end }}

{{ .Values.config }}
{{- end -}}

{{- define "greenroom.pod" -}}
metadata:
  labels:
    {{- include "greenroom.labels" . | nindent 4 }}
    {{- with .Values.podLabels }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  annotations:
    {{- if .Values.restartOnChange }}
    checksum/config: {{ include "greenroom.config" . | sha256sum }}
    {{- end }}
    {{- with .Values.podAnnotations }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
spec:
  {{- with .Values.imagePullSecrets }}
  imagePullSecrets:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  # preStop, server.shutdown_grace, store.patience, and 20 for the rest
  terminationGracePeriodSeconds: {{ add .Values.preStopSeconds .Values.shutdownGraceSeconds .Values.patienceSeconds 20 }}
  automountServiceAccountToken: false
  enableServiceLinks: false
  securityContext:
    runAsNonRoot: true
    runAsUser: 10001
    runAsGroup: 10001
    fsGroup: 10001
    fsGroupChangePolicy: OnRootMismatch
    seccompProfile:
      type: RuntimeDefault
  {{- with .Values.nodeSelector }}
  nodeSelector:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.tolerations }}
  tolerations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- if .Values.affinity }}
  affinity:
    {{- toYaml .Values.affinity | nindent 4 }}
  {{- else if .Values.postgresql.url }}
  affinity:
    podAntiAffinity:
      preferredDuringSchedulingIgnoredDuringExecution:
        - weight: 100
          podAffinityTerm:
            topologyKey: kubernetes.io/hostname
            labelSelector:
              matchLabels:
                {{- include "greenroom.selector" . | nindent 16 }}
  topologySpreadConstraints:
    - maxSkew: 1
      topologyKey: topology.kubernetes.io/zone
      whenUnsatisfiable: ScheduleAnyway
      labelSelector:
        matchLabels:
          {{- include "greenroom.selector" . | nindent 10 }}
  {{- end }}
  containers:
    - name: greenroom
      image: "{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}"
      imagePullPolicy: {{ .Values.image.pullPolicy }}
      env:
        - name: POD_NAME
          valueFrom:
            fieldRef:
              fieldPath: metadata.name
        - name: POD_IP
          valueFrom:
            fieldRef:
              fieldPath: status.podIP
        - name: NODE_ENV
          value: production
        {{- if .Values.postgresql.url }}
        - name: GREENROOM_DATABASE_PASSWORD
          valueFrom:
            secretKeyRef:
              name: {{ .Values.postgresql.passwordSecret.name }}
              key: {{ .Values.postgresql.passwordSecret.key }}
        {{- end }}
        {{- range $name, $secret := .Values.secrets }}
        - name: {{ $name }}
          valueFrom:
            secretKeyRef:
              name: {{ $secret.name }}
              key: {{ $secret.key }}
        {{- end }}
        {{- with .Values.env }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
      ports:
        - name: http
          containerPort: 3141
        {{- if .Values.postgresql.url }}
        - name: links
          containerPort: 3142
        {{- end }}
      # the store is no reason to restart a server, so /livez does not ask for it; /readyz does
      startupProbe:
        httpGet:
          path: /livez
          port: http
        periodSeconds: 2
        failureThreshold: 60
      livenessProbe:
        httpGet:
          path: /livez
          port: http
        periodSeconds: 10
        timeoutSeconds: 5
        failureThreshold: 6
      readinessProbe:
        httpGet:
          path: /readyz
          port: http
        periodSeconds: 5
        timeoutSeconds: 3
        failureThreshold: 2
      {{- if .Values.preStopSeconds }}
      lifecycle:
        preStop:
          exec:
            command: [sleep, {{ .Values.preStopSeconds | quote }}]
      {{- end }}
      resources:
        {{- toYaml .Values.resources | nindent 8 }}
      securityContext:
        allowPrivilegeEscalation: false
        readOnlyRootFilesystem: true
        capabilities:
          drop: [ALL]
      volumeMounts:
        - name: config
          mountPath: /etc/greenroom
          readOnly: true
        - name: state
          mountPath: /var/lib/greenroom
        - name: tmp
          mountPath: /tmp
        {{- if and .Values.postgresql.url .Values.postgresql.caSecret }}
        - name: database-ca
          mountPath: /etc/greenroom-database
          readOnly: true
        {{- end }}
  volumes:
    - name: config
      configMap:
        name: {{ include "greenroom.name" . }}
    # for programs of steps and tools
    - name: tmp
      emptyDir:
        sizeLimit: 256Mi
    {{- if .Values.postgresql.url }}
    # one small file, which has to outlive the process but not the pod
    - name: state
      emptyDir:
        sizeLimit: 16Mi
    {{- if .Values.postgresql.caSecret }}
    - name: database-ca
      secret:
        secretName: {{ .Values.postgresql.caSecret }}
    {{- end }}
    {{- end }}
{{- end -}}
