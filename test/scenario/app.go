package scenario

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/wait"
)

// The application that runs while the fleet is upgraded.
const (
	AppNamespace = "shop"
	AppName      = "web"
	AppReplicas  = 2
	// AppMinAvailable is the application's PodDisruptionBudget.
	AppMinAvailable = 1
)

// DeployApp creates the application, its budget and its service, and waits until it is available.
func (e *Env) DeployApp(ctx context.Context, image string) error {
	return e.DeployAppOf(ctx, image, AppReplicas, AppMinAvailable)
}

// DeployAppOf is DeployApp with so many pods, and a budget that keeps so many of them.
func (e *Env) DeployAppOf(ctx context.Context, image string, replicas, available int32) error {
	labels := map[string]string{"app": AppName}
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: AppNamespace}}
	if _, err := e.Kube.CoreV1().Namespaces().Create(ctx, ns, metav1.CreateOptions{}); exceptExists(err) != nil {
		return fmt.Errorf("creating namespace %s: %w", AppNamespace, err)
	}
	if _, err := e.Kube.AppsV1().Deployments(AppNamespace).Create(ctx, appDeployment(image, replicas, labels), metav1.CreateOptions{}); exceptExists(err) != nil {
		return fmt.Errorf("creating the application: %w", err)
	}
	minAvailable := intstr.FromInt32(available)
	pdb := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Name: AppName}, Spec: policyv1.PodDisruptionBudgetSpec{
		MinAvailable: &minAvailable, Selector: &metav1.LabelSelector{MatchLabels: labels}}}
	if _, err := e.Kube.PolicyV1().PodDisruptionBudgets(AppNamespace).Create(ctx, pdb, metav1.CreateOptions{}); exceptExists(err) != nil {
		return fmt.Errorf("creating the application's budget: %w", err)
	}
	svc := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: AppName}, Spec: corev1.ServiceSpec{
		Selector: labels, Ports: []corev1.ServicePort{{Port: 80, TargetPort: intstr.FromInt32(8080)}}}}
	if _, err := e.Kube.CoreV1().Services(AppNamespace).Create(ctx, svc, metav1.CreateOptions{}); exceptExists(err) != nil {
		return fmt.Errorf("creating the application's service: %w", err)
	}
	return e.waitApp(ctx, replicas)
}

func (e *Env) waitApp(ctx context.Context, replicas int32) error {
	err := wait.PollUntilContextTimeout(ctx, time.Second, 3*time.Minute, true, func(ctx context.Context) (bool, error) {
		d, err := e.Kube.AppsV1().Deployments(AppNamespace).Get(ctx, AppName, metav1.GetOptions{})
		return err == nil && d.Status.AvailableReplicas == replicas, nil
	})
	if err != nil {
		return fmt.Errorf("waiting for the application to be available: %w", err)
	}
	return nil
}

func appDeployment(image string, replicas int32, labels map[string]string) *appsv1.Deployment {
	grace := int64(10)
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: AppName},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas,
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{
					TerminationGracePeriodSeconds: &grace,
					TopologySpreadConstraints: []corev1.TopologySpreadConstraint{{
						MaxSkew: 1, TopologyKey: corev1.LabelHostname, WhenUnsatisfiable: corev1.ScheduleAnyway,
						LabelSelector: &metav1.LabelSelector{MatchLabels: labels}}},
					Containers: []corev1.Container{{
						Name: "web", Image: image, ImagePullPolicy: corev1.PullIfNotPresent,
						ReadinessProbe: &corev1.Probe{
							PeriodSeconds: 1,
							ProbeHandler:  corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/healthz", Port: intstr.FromInt32(8080)}},
						},
					}},
				},
			},
		},
	}
}

func exceptExists(err error) error {
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}
