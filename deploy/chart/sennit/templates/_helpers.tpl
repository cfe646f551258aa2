{{/* By digest if there is one. */}}
{{- define "sennit.image" -}}
{{- if .Values.image.digest -}}
{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end -}}
{{- end }}

{{/* Each build of the workflow role has objects of its own, side by side. */}}
{{- define "sennit.build" -}}
{{- with .Values.versioning.build }}-{{ . }}{{ end -}}
{{- end }}

{{/* A hash in the name has a change of the settings roll the workers, and pods of an older build keep theirs. */}}
{{- define "sennit.config" -}}
sennit-{{ include "sennit.settings" . | sha256sum | trunc 10 }}
{{- end }}

{{- define "sennit.labels" -}}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end }}
